package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// spread is so many jobs, evenly over a time, with due times that are multiples of
// grain: jobs with the same due time are one element.
func spread(grain time.Duration, from, n int, first time.Time, over time.Duration) []way.Jobs {
	grain = cmp.Or(grain, time.Millisecond)
	first = up(first, grain)
	if step := over / time.Duration(n); step > 0 && step%grain == 0 {
		return []way.Jobs{{From: from, Count: n, First: first, Step: step}}
	}
	var all []way.Jobs
	moments := max(1, int(over/grain))
	for i := range moments {
		begin, end := n*i/moments, n*(i+1)/moments
		if begin < end {
			all = append(all, way.Jobs{From: from + begin, Count: end - begin, First: first.Add(time.Duration(i) * grain)})
		}
	}
	return all
}

// up is the first multiple of grain that is not before t.
func up(t time.Time, grain time.Duration) time.Time {
	grain = cmp.Or(grain, time.Millisecond)
	if down := t.Truncate(grain); down.Before(t) {
		return down.Add(grain)
	}
	return t.Round(0)
}

// schedule schedules jobs the fastest way that there is.
func (w *world) schedule(ctx context.Context, jobs way.Jobs) error {
	err := w.inst.Bulk(ctx, jobs)
	if !errors.Is(err, way.ErrNoBulk) {
		return err
	}
	if w.Way.InOrder {
		return w.inst.Single(ctx, jobs, 1)
	}
	return w.inst.Single(ctx, jobs, Callers)
}

// Pending jobs have numbers that no record has a slot for, and are due from farAway on,
// over a day where the way's grain allows it.
const (
	farNumbers = 1_000_000_000
	farAway    = 6 * time.Hour
	farOver    = 24 * time.Hour
)

// far are so many jobs that stay pending.
func (w *world) far(n int) way.Jobs {
	grain := cmp.Or(w.Way.Grain, time.Millisecond)
	step := max(grain, (farOver / time.Duration(n)).Truncate(grain))
	if w.Way.OneDelay {
		step = 0
	}
	jobs := way.Jobs{From: farNumbers + w.pending, Count: n, First: up(time.Now().Add(farAway), grain), Step: step}
	w.pending += n
	return jobs
}

// fill schedules pending jobs until there are so many, in a limited time.
func (w *world) fill(ctx context.Context, pending int, limit time.Duration) (pace, error) {
	missing := pending - w.pending
	if missing <= 0 {
		return pace{}, nil
	}
	jobs := w.far(missing)
	p, err := timed(ctx, missing, min(1000, missing), limit, func(from, to int) error {
		return w.schedule(ctx, jobs.Slice(from, to))
	})
	w.pending -= missing - p.done
	fmt.Fprintf(w.Log, "%s: %s pending, %.0f jobs/s\n", w.Way.Name, thousands(w.pending), p.rate())
	return p, err
}

// probed are the jobs that are scheduled for how long so many will take, twice: the
// first half opens connections.
func probed(n int) int { return 2 * min(max(10, n/20), 2000) }

// probe schedules some jobs for how long it will take to schedule so many, with a
// margin. They stay pending; where others can't overtake them, they run.
func (w *world) probe(ctx context.Context, n int) (time.Duration, error) {
	some := probed(n) / 2
	var jobs way.Jobs
	if w.Way.InOrder {
		jobs = way.Jobs{From: w.number(2 * some), Count: 2 * some, First: up(time.Now(), w.Way.Grain)}
	} else {
		jobs = w.far(2 * some)
	}
	if err := w.schedule(ctx, jobs.Slice(0, some)); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := w.schedule(ctx, jobs.Slice(some, 2*some)); err != nil {
		return 0, err
	}
	p := pace{some, time.Since(began)}
	return p.needs(n) * 5 / 4, nil
}

// beside notes that there are not as many pending as there should be.
func (w *world) beside(pending int) string {
	if w.pending >= pending {
		return ""
	}
	return fmt.Sprintf("beside %s pending jobs only: scheduling more takes too long", thousands(w.pending))
}
