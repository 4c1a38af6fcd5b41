package ways

import (
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// runs is what a worker ran: all is closed when the jobs before the last have, and final
// when the last has.
type runs struct {
	all, final chan struct{}

	mu     sync.Mutex
	last   int
	due    map[int]time.Time
	starts map[int]int
	early  []int
}

func newRuns(last int) *runs {
	return &runs{
		all: make(chan struct{}), final: make(chan struct{}), last: last,
		due: make(map[int]time.Time), starts: make(map[int]int),
	}
}

func (r *runs) expect(batches ...way.Jobs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, jobs := range batches {
		for i := range jobs.Count {
			r.due[jobs.From+i] = jobs.Job(i).Due
		}
	}
}

func (r *runs) run(n int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.due[n]) {
		r.early = append(r.early, n)
	}
	r.starts[n]++
	if r.starts[n] > 1 {
		return
	}
	if n == r.last {
		close(r.final)
	} else if len(r.starts) == r.last {
		close(r.all)
	}
}

// check wants each job up to the last to have run once, and no other.
func (r *runs) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.early) > 0 {
		t.Errorf("early: %v", r.early)
	}
	for n := range r.last + 1 {
		if r.starts[n] != 1 {
			t.Errorf("job %d ran %d times", n, r.starts[n])
		}
	}
	if len(r.starts) > r.last+1 {
		t.Errorf("%d jobs ran, of %d", len(r.starts), r.last+1)
	}
}
