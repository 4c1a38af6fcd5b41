package ways

import (
	"context"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

const (
	wheelTick  = 100 * time.Millisecond
	wheelSlots = 512
)

func wheelWay() way.Way {
	return way.Way{
		Name: "wheel",
		What: "in this process: a hashed timing wheel, a tick of 100 ms, 512 slots; nothing outlives the process",
		Open: func(context.Context, way.Env) (way.Instance, error) {
			return &wheel{begun: time.Now()}, nil
		},
	}
}

// wheel is a hashed timing wheel: a job is in the slot of the tick at which it is due,
// and waits there for as many rounds as come before.
type wheel struct {
	begun time.Time // of tick 0

	mu    sync.Mutex
	tick  int // the last one whose slot was looked through
	slots [wheelSlots][]spoke
}

type spoke struct{ n, rounds int }

// add needs mu. A job is due at the end of the tick that its time falls into, so that
// none is early.
func (w *wheel) add(job way.Job) {
	due := int((job.Due.Sub(w.begun) + wheelTick - 1) / wheelTick)
	due = max(due, w.tick+1)
	slot := &w.slots[due%wheelSlots]
	*slot = append(*slot, spoke{n: job.N, rounds: (due - w.tick - 1) / wheelSlots})
}

func (w *wheel) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(_ context.Context, job way.Job) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(job)
		return nil
	})
}

// Bulk adds all under one lock.
func (w *wheel) Bulk(_ context.Context, jobs way.Jobs) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range jobs.Count {
		w.add(jobs.Job(i))
	}
	return nil
}

// Work looks through a slot at each tick.
func (w *wheel) Work(ctx context.Context, ready func(), run func(n int)) error {
	workers := newPool(run)
	defer workers.end()
	ready()
	for {
		for time.Since(w.begun) >= w.next() {
			for _, n := range w.turn() {
				workers.jobs <- n
			}
			if ctx.Err() != nil {
				return nil
			}
		}
		if !pause(ctx, w.next()-time.Since(w.begun)) {
			return nil
		}
	}
}

// next is when the next tick comes, after the wheel began.
func (w *wheel) next() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.tick+1) * wheelTick
}

// turn goes on by a tick, and takes what is due at it.
func (w *wheel) turn() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick++
	slot := &w.slots[w.tick%wheelSlots]
	var due []int
	left := (*slot)[:0]
	for _, s := range *slot {
		if s.rounds == 0 {
			due = append(due, s.n)
			continue
		}
		s.rounds--
		left = append(left, s)
	}
	*slot = left
	return due
}

func (w *wheel) Close() error { return nil }
