package ways

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

const testPatience = time.Minute

// redisWays are those that need nothing but a Redis.
func redisWays() []way.Way {
	return slices.DeleteFunc(All(), func(w way.Way) bool { return !onlyRedis(w.Needs) })
}

func onlyRedis(needs []string) bool {
	return !slices.ContainsFunc(needs, func(name string) bool { return name != redisServer })
}

func newEnv(t *testing.T, needs []string) way.Env {
	env := way.Env{Dir: t.TempDir(), Addrs: map[string]string{}}
	if slices.Contains(needs, redisServer) {
		env.Addrs[redisServer] = startRedis(t)
	}
	return env
}

// requireEnv turns the skip for a missing redis-server into a failure.
const requireEnv = "KEYFUSE_REQUIRE_REDIS"

func startRedis(t *testing.T) string {
	t.Helper()
	server, err := servers.Start(t.Context(), t.TempDir(), redisServer)
	if errors.Is(err, servers.ErrMissing) && os.Getenv(requireEnv) != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server.Addr
}

func TestEachJobRunsOnceAndNotEarly(t *testing.T) {
	for _, w := range redisWays() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			t.Run("single", func(t *testing.T) {
				runAll(t, w, func(i way.Instance, jobs way.Jobs) error { return i.Single(t.Context(), jobs, 8) })
			})
			t.Run("bulk", func(t *testing.T) {
				runAll(t, w, func(i way.Instance, jobs way.Jobs) error {
					err := i.Bulk(t.Context(), jobs)
					if errors.Is(err, way.ErrNoBulk) {
						return i.Single(t.Context(), jobs, way.Workers)
					}
					return err
				})
			})
		})
	}
}

// runAll schedules 200 jobs that are due within some two seconds, and works until all
// have run.
func runAll(t *testing.T, w way.Way, schedule func(way.Instance, way.Jobs) error) {
	env := newEnv(t, w.Needs)
	worker := open(t, w, env)
	scheduler := worker
	if !w.Local() {
		scheduler = open(t, w, env)
	}
	s := &seen{times: map[int][]time.Time{}, all: make(chan struct{}), want: 200}
	stop := work(t, worker, s)
	due := map[int]time.Time{}
	for _, jobs := range someJobs(w.Grain, s.want) {
		if err := schedule(scheduler, jobs); err != nil {
			t.Fatal(err)
		}
		for i := range jobs.Count {
			due[jobs.Job(i).N] = jobs.Job(i).Due
		}
	}
	select {
	case <-s.all:
	case <-time.After(testPatience):
		t.Errorf("not all jobs have run within %s", testPatience)
	}
	stop()
	for n, at := range due {
		if starts := s.times[n]; len(starts) != 1 || starts[0].Before(at) {
			t.Errorf("job %d was due %s and ran %s", n, at.Format(time.StampMicro), starts)
		}
	}
	if len(s.times) > len(due) {
		t.Errorf("%d jobs ran, of %d", len(s.times), len(due))
	}
}

func open(t *testing.T, w way.Way, env way.Env) way.Instance {
	t.Helper()
	instance, err := w.Open(t.Context(), env)
	if errors.Is(err, servers.ErrMissing) {
		t.Skipf("%s is left out: %v", w.Name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return instance
}

// someJobs are jobs at due times that the grain allows, from a moment from now on.
func someJobs(grain time.Duration, count int) []way.Jobs {
	soon := time.Now().Add(300 * time.Millisecond).Round(time.Millisecond)
	if grain < time.Second {
		return []way.Jobs{{From: 5, Count: count, First: soon, Step: 8 * time.Millisecond}}
	}
	first := soon.Add(grain).Truncate(grain)
	return []way.Jobs{
		{From: 5, Count: count / 2, First: first},
		{From: 5 + count/2, Count: count / 2, First: first.Add(grain)},
	}
}

// seen notes runs.
type seen struct {
	mu    sync.Mutex
	times map[int][]time.Time
	want  int
	all   chan struct{} // closed once so many jobs have run
}

func (s *seen) run(n int) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[n] = append(s.times[n], now)
	if len(s.times) == s.want && len(s.times[n]) == 1 {
		close(s.all)
	}
}

// work starts a worker, waits until it is ready, and gives what stops it.
func work(t *testing.T, worker way.Instance, s *seen) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	ended := make(chan error, 1)
	var working sync.WaitGroup
	working.Go(func() { ended <- worker.Work(ctx, func() { close(ready) }, s.run) })
	stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
		if err := <-ended; err != nil {
			t.Errorf("working: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("it ended before it was ready: %v", err)
	case <-time.After(testPatience):
		t.Fatal("it does not get ready")
	}
	return stop
}

func TestCountersFireAtEachThreshold(t *testing.T) {
	const counters, callers = 4, 8
	for _, c := range Countings() {
		if !onlyRedis(c.Needs) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			counter, err := c.Open(t.Context(), newEnv(t, c.Needs))
			if err != nil {
				t.Fatal(err)
			}
			defer counter.Close() //nolint:errcheck // all was answered
			fired := func(want int) {
				t.Helper()
				if n, err := counter.Fired(t.Context()); n != want || err != nil {
					t.Errorf("%d firings, %v; want %d", n, err, want)
				}
			}
			fired(0)
			if err := counter.Single(t.Context(), counters*250, counters, callers); err != nil {
				t.Fatal(err)
			}
			fired(counters * 2)
			if err := counter.Bulk(t.Context(), counters*650, counters); err != nil {
				t.Fatal(err)
			}
			fired(counters * 9) // 900 hits of each
		})
	}
}

func TestNamesAreDifferent(t *testing.T) {
	names := map[string]bool{}
	for _, w := range All() {
		if names[w.Name] || w.What == "" {
			t.Errorf("%q is there twice, or says nothing: %q", w.Name, w.What)
		}
		names[w.Name] = true
	}
}

func TestWithoutNodeBullMQIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := bullMQWay().Open(t.Context(), way.Env{Addrs: map[string]string{redisServer: "127.0.0.1:1"}})
	if !errors.Is(err, servers.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}
