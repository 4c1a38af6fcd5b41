package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/registry"
)

// throughProxy runs a test on a real Redis that is reached through a proxy, by
// clients with go-redis's own retries.
func throughProxy(t *testing.T, test func(w *world, proxy *redistest.Proxy)) {
	t.Parallel()
	onRedis(t, func(w *world) {
		proxy := redistest.NewProxy(t, w.addr)
		var err error
		if w.jobs, err = client.New(proxy.Client(t), client.Config{}); err != nil {
			w.Fatal(err)
		}
		w.open = func() redis.UniversalClient {
			return proxy.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
		}
		test(w, proxy)
	})
}

// The words of scripts' calls: a cancel and a claim differ in nothing else that
// a proxy sees, so the tests that want one of them run while nothing else does.
const anyScript = "evalsha"

func TestAScheduleWhoseReplyIsLostArmsOnce(t *testing.T) {
	throughProxy(t, func(w *world, proxy *redistest.Proxy) {
		w.schedule(client.Spec{ID: "warm", Task: "mail", In: time.Hour}) // loads the script
		for i, mode := range []client.IfExists{client.Fail, client.Keep, client.Replace} {
			proxy.SwallowRepliesTo(anyScript, 1)
			id := fmt.Sprint("job", i)
			s := w.schedule(client.Spec{ID: id, Task: "mail", In: time.Hour, IfExists: mode})
			if s.Replaced || s.Kept {
				w.Errorf("%s: met its own work: %+v", mode, s)
			}
			if _, err := w.jobs.Schedule(w.Context(), client.Spec{ID: id, Task: "mail"}); !errors.Is(err, client.ErrExists) {
				w.Errorf("%s: another call with this id: %v", mode, err)
			}
		}
	})
}

func TestACancelWhoseReplyIsLostCancels(t *testing.T) {
	throughProxy(t, func(w *world, proxy *redistest.Proxy) {
		w.schedule(client.Spec{ID: "warm", Task: "mail", In: time.Hour})
		if err := w.jobs.Cancel(w.Context(), "warm"); err != nil {
			w.Fatal(err)
		}
		w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Hour})
		proxy.SwallowRepliesTo(anyScript, 1)
		// The second try can't know that the first one did it.
		if err := w.jobs.Cancel(w.Context(), "a"); err != nil && !errors.Is(err, client.ErrNotFound) {
			w.Errorf("cancel: %v", err)
		}
		if n := w.rdb.Exists(w.Context(), "a", "class:a", "keyfuse:due:mail").Val(); n != 0 {
			w.Errorf("%d keys are left", n)
		}
	})
}

func TestLostRepliesNeitherLoseNorRepeatRuns(t *testing.T) {
	throughProxy(t, func(w *world, proxy *redistest.Proxy) {
		const jobs = 200
		var mu sync.Mutex
		runs := make(map[string]int)
		reg := tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
			mu.Lock()
			runs[job.ID]++
			mu.Unlock()
			if rand.N(4) == 0 {
				proxy.SwallowRepliesTo(anyScript, 1)
			}
			return nil
		}})
		var nodes []*node
		for range 2 {
			nodes = append(nodes, w.start(reg, engine.Config{Lease: calm, Concurrency: 4}))
		}
		for i := range jobs {
			proxy.SwallowRepliesTo(anyScript, i%2)
			if s := w.schedule(client.Spec{ID: fmt.Sprint("job", i), Task: "mail", In: 2 * time.Second}); s.Replaced || s.Kept {
				w.Errorf("scheduled %+v", s)
			}
		}
		for range jobs {
			var f engine.Firing
			select {
			case f = <-nodes[0].firings:
			case f = <-nodes[1].firings:
			case <-time.After(w.patience()):
				w.Fatal("waited in vain for a firing")
			}
			if f.Outcome != engine.Done || f.Job.Attempt != 1 {
				w.Errorf("fired %+v", f)
			}
		}
		for _, n := range nodes {
			n.stop()
		}
		for i := range jobs {
			if n := runs[fmt.Sprint("job", i)]; n != 1 {
				w.Errorf("job%d ran %d times", i, n)
			}
		}
	})
}

// TestManyChangersLeaveEachJobToOne lets many change the same few ids at once.
// What each was told must add up with what ran.
func TestManyChangersLeaveEachJobToOne(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		const changers, rounds, ids = 8, 150, 3
		reg := tasks(map[string]registry.Func{"mail": nop})
		nodes := []*node{w.start(reg, engine.Config{Lease: calm}), w.start(reg, engine.Config{Lease: calm})}
		var mu sync.Mutex
		armed, ended := make(map[string]bool), 0 // payloads that were scheduled; jobs that were replaced or cancelled
		var changing sync.WaitGroup
		for c := range changers {
			changing.Go(func() {
				for r := range rounds {
					id, payload := fmt.Sprint("job", rand.N(ids)), fmt.Sprint(c, "/", r)
					s, cancelled, err := change(w, id, payload)
					if err != nil {
						w.Error(err)
						return
					}
					mu.Lock()
					if s {
						armed[payload] = true
					}
					ended += cancelled
					mu.Unlock()
				}
			})
		}
		changing.Wait()
		for i := range ids {
			if _, err := w.jobs.Fire(w.Context(), fmt.Sprint("job", i)); err != nil && !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrRunning) {
				w.Error(err)
			}
		}
		ran := make(map[string]bool)
		for len(ran) < len(armed)-ended {
			var f engine.Firing
			select {
			case f = <-nodes[0].firings:
			case f = <-nodes[1].firings:
			case <-time.After(w.patience()):
				w.Fatalf("%d scheduled, %d replaced or cancelled, and only %d ran", len(armed), ended, len(ran))
			}
			payload := string(f.Job.Payload)
			if ran[payload] || !armed[payload] || f.Outcome != engine.Done {
				w.Errorf("ran twice, or was never scheduled: %+v", f)
			}
			ran[payload] = true
		}
		for _, n := range nodes {
			n.firedNothingMore()
		}
	})
}

// change does one of what can be done to an id, at random, and says whether it
// scheduled a job, and how many it took away.
func change(w *world, id, payload string) (scheduled bool, ended int, err error) {
	in := time.Duration(rand.N(20)) * time.Millisecond
	switch rand.N(5) {
	case 0:
		_, err = w.jobs.Schedule(w.Context(), client.Spec{ID: id, Task: "mail", Payload: []byte(payload), In: in})
		scheduled = err == nil
	case 1:
		var s client.Scheduled
		s, err = w.jobs.Schedule(w.Context(), client.Spec{ID: id, Task: "mail", Payload: []byte(payload), In: in, IfExists: client.Replace})
		if scheduled = err == nil; s.Replaced {
			ended = 1
		}
	case 2:
		if err = w.jobs.Cancel(w.Context(), id); err == nil {
			ended = 1
		}
	case 3:
		_, err = w.jobs.Reschedule(w.Context(), id, in, time.Time{})
	case 4:
		_, err = w.jobs.Fire(w.Context(), id)
	}
	if errors.Is(err, client.ErrExists) || errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrRunning) {
		err = nil
	}
	return scheduled, ended, err
}

// firedNothingMore ends a node and checks that it has fired nothing else.
func (n *node) firedNothingMore() {
	n.w.Helper()
	n.stop()
	for len(n.firings) > 0 {
		n.w.Errorf("fired as well: %+v", <-n.firings)
	}
}

func TestAnImmediateScheduleWhoseReplyIsLostRunsOnce(t *testing.T) {
	throughProxy(t, func(w *world, proxy *redistest.Proxy) {
		// The node has a way of its own, so that the loss meets the schedule.
		n := w.startOn(w.clientVia(w.addr, w.dial), tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm})
		w.scheduleMany("warm", 1, 0)
		n.eachOnce("warm", 1)
		for i := range 10 {
			proxy.SwallowRepliesTo(anyScript, 1)
			w.schedule(client.Spec{ID: fmt.Sprint("now", i), Task: "mail"})
		}
		n.eachOnce("now", 10)
		n.firedNothing(w.span)
	})
}
