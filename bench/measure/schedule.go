package measure

import (
	"context"
	"errors"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// schedule measures how quickly jobs are scheduled that are due far away, without a
// worker, and what each of them takes in the store.
func schedule(ctx context.Context, l *Lab) error {
	return l.in(ctx, 0, false, func(w *world) error {
		single := func(callers int) func(way.Jobs) error {
			return func(jobs way.Jobs) error { return w.inst.Single(ctx, jobs, callers) }
		}
		if err := w.rate(ctx, "schedule-1", l.Sizes.One, single(1)); err != nil {
			return err
		}
		if err := w.rate(ctx, "schedule-32", l.Sizes.Many, single(Callers)); err != nil {
			return err
		}
		err := w.rate(ctx, "schedule-bulk", l.Sizes.Bulk, func(jobs way.Jobs) error { return w.inst.Bulk(ctx, jobs) })
		if errors.Is(err, way.ErrNoBulk) {
			l.absent("schedule-bulk", 0, err.Error())
		} else if err != nil {
			return err
		}
		return w.memory(ctx)
	})
}

// memory measures what jobs take in the store, as many for each way, once all
// connections are open: their buffers are in it too.
func (w *world) memory(ctx context.Context) error {
	before, err := w.stores.memory(ctx)
	if err != nil {
		return err
	}
	added, err := w.fill(ctx, w.pending+w.Sizes.Many, w.Sizes.Loading)
	if err != nil {
		return err
	}
	return w.perJob(ctx, "memory", 0, before, added.done)
}

// rate measures how quickly so many jobs are scheduled, after a few that open
// connections and are not counted.
func (w *world) rate(ctx context.Context, figure string, n int, do func(way.Jobs) error) error {
	warm := min(n/10, 200)
	jobs := w.far(warm + n)
	if err := do(jobs.Slice(0, warm)); err != nil {
		return err
	}
	p, err := timed(ctx, n, max(1, n/10), w.Sizes.Scheduling, func(from, to int) error {
		return do(jobs.Slice(warm+from, warm+to))
	})
	if err == nil {
		w.tell(figure, 0, p.rate(), short("scheduling", p, n))
	}
	return err
}

// perJob tells what jobs that were added have added to the memory before.
func (w *world) perJob(ctx context.Context, figure string, size int, before float64, added int) error {
	after, err := w.stores.memory(ctx)
	if err != nil {
		return err
	}
	note := ""
	if w.Way.Local() {
		note = "of the process's heap"
	}
	w.tell(figure, size, (after-before)/float64(added), note)
	return nil
}
