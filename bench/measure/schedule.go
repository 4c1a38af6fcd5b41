package measure

import (
	"context"
	"errors"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// schedule measures what jobs that are due far away take in the store, and how quickly
// they are scheduled, without a worker.
func schedule(ctx context.Context, l *Lab) error {
	return l.in(ctx, 0, false, func(w *world) error {
		one := func(jobs way.Jobs) error { return w.inst.Single(ctx, jobs, 1) }
		many := func(jobs way.Jobs) error { return w.inst.Single(ctx, jobs, Callers) }
		bulk := func(jobs way.Jobs) error { return w.inst.Bulk(ctx, jobs) }
		if !l.Way.Floor {
			if err := w.memory(ctx, many); err != nil {
				return err
			}
		}
		if err := w.rate(ctx, "schedule-1", l.Sizes.One, one); err != nil {
			return err
		}
		if err := w.rate(ctx, "schedule-32", l.Sizes.Many, many); err != nil {
			return err
		}
		err := w.rate(ctx, "schedule-bulk", l.Sizes.Bulk, bulk)
		if errors.Is(err, way.ErrNoBulk) {
			l.absent("schedule-bulk", 0, err.Error())
			return nil
		}
		return err
	})
}

// warm is how many jobs at most are scheduled first, which open connections.
const warm = 200

// memory measures what jobs take in the store, as many for each way, once connections
// are open: their buffers are in it too. It comes first, while there are as many jobs in
// every way: a hash table that grows meanwhile would count for one and not for another.
func (w *world) memory(ctx context.Context, many func(way.Jobs) error) error {
	if err := many(w.far(min(w.Sizes.Weighed, warm))); err != nil {
		return err
	}
	if err := w.schedule(ctx, w.far(min(w.Sizes.Weighed, atOnce))); err != nil {
		return err
	}
	before, err := w.stores.memory(ctx)
	if err != nil {
		return err
	}
	added, err := w.fill(ctx, w.pending+w.Sizes.Weighed, w.Sizes.Loading)
	if err != nil {
		return err
	}
	return w.perJob(ctx, "memory", 0, before, added.done)
}

// atOnce is how many jobs at most are scheduled before it is known how long that takes.
const atOnce = 1000

// rate measures how quickly so many jobs are scheduled, after a few that open
// connections and are not counted.
func (w *world) rate(ctx context.Context, figure string, n int, do func(way.Jobs) error) error {
	first := min(n/10, warm)
	jobs := w.far(first + n)
	if err := do(jobs.Slice(0, first)); err != nil {
		return err
	}
	p, err := timed(ctx, n, max(1, min(n/10, atOnce)), w.Sizes.Scheduling, func(from, to int) error {
		return do(jobs.Slice(first+from, first+to))
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
