package ways

import (
	"context"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func heapWay() way.Way {
	return way.Way{
		Name: "heap",
		What: "in this process: a binary heap and one timer; nothing outlives the process",
		Open: func(context.Context, way.Env) (way.Instance, error) {
			return &heap{earlier: make(chan struct{}, 1)}, nil
		},
	}
}

// heap is a delay queue: jobs in a binary heap, the earliest first.
type heap struct {
	mu      sync.Mutex
	jobs    []delayed
	earlier chan struct{} // the first is another one
}

type delayed struct {
	due int64 // Unix nanoseconds
	n   int
}

func delayedOf(job way.Job) delayed { return delayed{due: job.Due.UnixNano(), n: job.N} }

func (h *heap) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(_ context.Context, job way.Job) error {
		h.add(job)
		return nil
	})
}

func (h *heap) add(job way.Job) {
	h.mu.Lock()
	first := h.push(delayedOf(job))
	h.mu.Unlock()
	if first {
		h.tell()
	}
}

// Bulk adds all under one lock.
func (h *heap) Bulk(_ context.Context, jobs way.Jobs) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range jobs.Count {
		if h.push(delayedOf(jobs.Job(i))) {
			h.tell()
		}
	}
	return nil
}

func (h *heap) tell() {
	select {
	case h.earlier <- struct{}{}:
	default: // it was told already, and has not looked yet
	}
}

// Work sleeps until the first is due, unless an earlier one comes.
func (h *heap) Work(ctx context.Context, ready func(), run func(n int)) error {
	workers := newPool(run)
	defer workers.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	ready()
	due := make([]int, 0, way.Workers)
	for ctx.Err() == nil {
		var wait time.Duration
		due, wait = h.take(due[:0])
		for _, n := range due {
			workers.jobs <- n
		}
		if len(due) > 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-h.earlier:
		case <-timer.C:
		}
	}
	return nil
}

// take fills due with jobs that are due, and says how long to wait for the next one.
func (h *heap) take(due []int) ([]int, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now().UnixNano()
	for len(h.jobs) > 0 && len(due) < cap(due) {
		if h.jobs[0].due > now {
			return due, time.Duration(h.jobs[0].due - now)
		}
		due = append(due, h.pop().n)
	}
	return due, time.Hour // an earlier one is told of
}

func (h *heap) Close() error { return nil }

// push adds a job, and says whether it is the first.
func (h *heap) push(job delayed) bool {
	i := len(h.jobs)
	h.jobs = append(h.jobs, job)
	for i > 0 {
		parent := (i - 1) / 2
		if h.jobs[parent].due <= job.due {
			break
		}
		h.jobs[i] = h.jobs[parent]
		i = parent
	}
	h.jobs[i] = job
	return i == 0
}

// pop removes the first.
func (h *heap) pop() delayed {
	first, last := h.jobs[0], len(h.jobs)-1
	job := h.jobs[last]
	h.jobs = h.jobs[:last]
	i := 0
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && h.jobs[child+1].due < h.jobs[child].due {
			child++
		}
		if job.due <= h.jobs[child].due {
			break
		}
		h.jobs[i] = h.jobs[child]
		i = child
	}
	if last > 0 {
		h.jobs[i] = job
	}
	return first
}
