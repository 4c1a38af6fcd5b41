package ways

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

func newEnv(t *testing.T, needs []string) way.Env {
	t.Helper()
	env := way.Env{Dir: t.TempDir(), Addrs: map[string]string{}}
	for _, name := range needs {
		env.Addrs[name] = startServer(t, name)
	}
	return env
}

func startServer(t *testing.T, name string) (addr string) {
	t.Helper()
	server, err := servers.Start(t.Context(), t.TempDir(), name)
	if errors.Is(err, servers.ErrMissing) && !required(name) {
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

// required turns the skip for a missing server into a failure.
func required(name string) bool {
	return os.Getenv("KEYFUSE_REQUIRE_SERVERS") == "1" ||
		name == redisServer && os.Getenv("KEYFUSE_REQUIRE_REDIS") == "1"
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

func TestEachJobRunsOnceAndNotEarly(t *testing.T) {
	for _, w := range All() {
		if w.Floor {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			env := newEnv(t, w.Needs)
			worker := open(t, w, env)
			scheduler := worker
			if !w.Local() {
				scheduler = open(t, w, env)
			}
			runsEachOnce(t, w, scheduler, worker)
		})
	}
}

// runsEachOnce schedules 100 jobs one by one and 100 at once, all due within two
// seconds, and one when those have run: by then none may have run twice.
func runsEachOnce(t *testing.T, w way.Way, scheduler, worker way.Instance) {
	t.Helper()
	const half, last = 100, 200
	seen := newRuns(last)
	ctx, stop := context.WithCancel(t.Context())
	ready, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- worker.Work(ctx, func() { close(ready) }, seen.run) }()
	defer func() {
		stop()
		if err := <-worked; err != nil {
			t.Errorf("Work returned %v", err)
		}
		seen.check(t)
	}()
	await(t, "the worker to be ready", ready, worked)

	one, many := soon(w, 0, half), soon(w, half, half)
	seen.expect(one, many)
	if err := scheduler.Single(t.Context(), one, 4); err != nil {
		t.Fatal(err)
	}
	if err := inBulk(t.Context(), scheduler, many); err != nil {
		t.Fatal(err)
	}
	await(t, "the jobs to run", seen.all, worked)

	final := soon(w, last, 1)
	seen.expect(final)
	if err := scheduler.Single(t.Context(), final, 1); err != nil {
		t.Fatal(err)
	}
	await(t, "the last job to run", seen.final, worked)
}

func inBulk(ctx context.Context, scheduler way.Instance, jobs way.Jobs) error {
	err := scheduler.Bulk(ctx, jobs)
	if errors.Is(err, way.ErrNoBulk) {
		return scheduler.Single(ctx, jobs, 8)
	}
	return err
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
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	select {
	case <-event:
	case err := <-worked:
		worked <- err
		t.Fatalf("waiting for %s, Work returned %v", what, err)
	case <-patience.C:
		t.Fatalf("waited a minute for %s", what)
	}
}

func TestCountersFireAtEachThreshold(t *testing.T) {
	const counters, callers = 4, 8
	for _, c := range Countings() {
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
