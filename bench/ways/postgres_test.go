package ways

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

func TestPostgresWays(t *testing.T) { onServers(t, postgresWays()) }

// onServers gives each way some jobs on a server of its own.
func onServers(t *testing.T, ways []way.Way) {
	for _, w := range ways {
		t.Run(w.Name, func(t *testing.T) {
			env := way.Env{Addrs: make(map[string]string), Dir: t.TempDir()}
			for _, name := range w.Needs {
				env.Addrs[name] = serverFor(t, name)
			}
			instance, err := w.Open(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := instance.Close(); err != nil {
					t.Error(err)
				}
			}()
			runsEachOnce(t, w, instance)
		})
	}
}

func serverFor(t *testing.T, name string) (addr string) {
	t.Helper()
	s, err := servers.Start(t.Context(), t.TempDir(), name)
	if errors.Is(err, servers.ErrMissing) && os.Getenv("KEYFUSE_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.Addr
}

// runsEachOnce schedules 100 jobs one by one and 100 at once, all due within two
// seconds, and one when those have run: by then none may have run twice.
func runsEachOnce(t *testing.T, w way.Way, instance way.Instance) {
	const half, last = 100, 200
	seen := newRuns(last)
	ctx, stop := context.WithCancel(t.Context())
	ready, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- instance.Work(ctx, func() { close(ready) }, seen.run) }()
	defer func() {
		stop()
		if err := <-worked; err != nil {
			t.Errorf("Work returned %v", err)
		}
		seen.check(t, last+1)
	}()
	await(t, "the worker to be ready", ready, worked)

	one, many := soon(w, 0, half), soon(w, half, half)
	seen.expect(one, many)
	if err := instance.Single(t.Context(), one, 4); err != nil {
		t.Fatal(err)
	}
	err := instance.Bulk(t.Context(), many)
	if errors.Is(err, way.ErrNoBulk) {
		err = instance.Single(t.Context(), many, 8)
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the jobs to run", seen.all, worked)

	final := soon(w, last, 1)
	seen.expect(final)
	if err := instance.Single(t.Context(), final, 1); err != nil {
		t.Fatal(err)
	}
	await(t, "the last job to run", seen.final, worked)
}

// soon are jobs that are due within two seconds.
func soon(w way.Way, from, count int) way.Jobs {
	jobs := way.Jobs{From: from, Count: count, First: time.Now().Add(500 * time.Millisecond).Truncate(time.Millisecond)}
	if w.Grain > time.Millisecond {
		jobs.First = jobs.First.Truncate(w.Grain).Add(w.Grain)
	} else {
		jobs.Step = 10 * time.Millisecond
	}
	return jobs
}

// await waits for an event, unless the worker has ended.
func await(t *testing.T, what string, event <-chan struct{}, worked chan error) {
	t.Helper()
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	select {
	case <-event:
	case err := <-worked:
		worked <- err
		t.Fatalf("waiting for %s, Work returned %v", what, err)
	case <-patience.C:
		t.Fatalf("waited 30 s for %s", what)
	}
}

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

func (r *runs) check(t *testing.T, jobs int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.early) > 0 {
		t.Errorf("early: %v", r.early)
	}
	for n := range jobs {
		if r.starts[n] != 1 {
			t.Errorf("job %d ran %d times", n, r.starts[n])
		}
	}
	if len(r.starts) > jobs {
		t.Errorf("%d jobs ran of %d", len(r.starts), jobs)
	}
}
