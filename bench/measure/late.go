package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// lateness measures how late jobs are run beside more and more pending ones.
func lateness(ctx context.Context, l *Lab) error {
	s := l.Sizes
	return l.in(ctx, len(s.Pending)*s.Spread, true, func(w *world) error {
		for _, pending := range s.Pending {
			if _, err := w.fill(ctx, pending, s.Loading); err != nil {
				return err
			}
			t, note, err := w.stream(ctx)
			if err != nil {
				return err
			}
			note = joined([]string{w.beside(pending), note})
			l.tell("late-p50", pending, t.percentile(0.5), note, t.beyond(0.5))
			l.tell("late-p99", pending, t.percentile(0.99), note, t.beyond(0.99))
			l.tell("late-max", pending, t.percentile(1), note, t.beyond(1))
			l.tell("early", pending, float64(t.early), note)
			l.tell("unrun", pending, float64(t.unrun), note)
			l.tell("twice", pending, float64(t.twice), note)
		}
		return nil
	})
}

// stream runs the jobs whose lateness is measured.
func (w *world) stream(ctx context.Context) (tally, string, error) {
	s := w.Sizes
	jobs := spread(w.Way.Grain, w.number(s.Spread), s.Spread, time.Now().Add(s.Lead), s.Over)
	tardy, err := w.put(ctx, jobs)
	if err != nil {
		return tally{}, "", err
	}
	note := ""
	if tardy > 0 {
		note = fmt.Sprintf("some were scheduled up to %.1f s after they were due", tardy.Seconds())
	}
	t, err := w.drain(ctx, jobs, s.Draining)
	return t, joined([]string{note, t.strays()}), err
}

// put schedules jobs, in about a second at a time, and gives how long it went on after
// one of them was due: 0 if it did not.
func (w *world) put(ctx context.Context, groups []way.Jobs) (tardy time.Duration, err error) {
	for _, jobs := range groups {
		_, err := timed(ctx, jobs.Count, 1000, time.Hour, func(from, to int) error {
			some := jobs.Slice(from, to)
			err := w.schedule(ctx, some)
			tardy = max(tardy, time.Since(some.First))
			return err
		})
		if err != nil {
			return tardy, err
		}
	}
	return tardy, nil
}

// drain waits until jobs have run: for most after the last is due, and until none has
// run for the time that Sizes calls quiet. Jobs that should only wait and have run since
// it was called last are early.
func (w *world) drain(ctx context.Context, jobs []way.Jobs, most time.Duration) (tally, error) {
	last := lastDue(jobs)
	wait := waiting{from: last, most: most, quiet: w.Sizes.Quiet, changed: last}
	err := w.await(ctx, func() bool {
		return w.rec.Ended() >= w.used || wait.over(w.rec.Ended(), time.Now())
	})
	t := count(w.rec.Slots(), jobs, time.Now())
	astray := w.rec.Strange()
	t.astray, w.astray = astray-w.astray, astray
	t.early += t.astray
	fmt.Fprintf(w.Log, "%s: %s of %s have run\n", w.Way.Name, thousands(t.ended), thousands(len(t.late)))
	return t, err
}

// waiting is how long something is waited for.
type waiting struct {
	from        time.Time // before that it never ends
	most, quiet time.Duration

	seen    int
	changed time.Time // not before from
}

// over says whether waiting has ended: so many have been seen by now.
func (w *waiting) over(seen int, now time.Time) bool {
	if seen != w.seen {
		w.seen, w.changed = seen, now
	}
	if now.Before(w.from) {
		w.changed = w.from
	}
	return now.After(w.from.Add(w.most)) || now.Sub(w.changed) > w.quiet
}
