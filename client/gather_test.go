package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// gate is a hook that holds scripts up, each until it is let through or its context
// ends, and counts them.
type gate struct {
	mu      sync.Mutex
	calls   int
	through chan struct{}
	done    func(redis.Cmder) // may change the answer of a script; nil at first
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		g.mu.Lock()
		g.calls++
		g.mu.Unlock()
		select {
		case <-g.through:
			if err := next(ctx, cmd); g.done == nil {
				return err
			}
			g.done(cmd)
			return cmd.Err()
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
	}
}

// hitters count hits of a counter at the same time, as callers schedule.
func (w *world) hitters(ctx context.Context, answers chan<- string, hits ...client.Hit) {
	for _, hit := range hits {
		go func() {
			counted, err := w.c.Hit(ctx, hit)
			answers <- fmt.Sprint(counted.Count, " ", err)
		}()
		synctest.Wait()
	}
}

// callers schedules ids at the same time, each with a caller of its own, and waits until
// all of them wait. The answers come by id once the gate lets them.
func (w *world) callers(ctx context.Context, answers chan<- string, ids ...string) {
	for _, id := range ids {
		go func() {
			_, err := w.c.Schedule(ctx, client.Spec{ID: id, Task: "mail", In: time.Hour})
			answers <- fmt.Sprint(id, " ", err)
		}()
		synctest.Wait()
	}
}

func gated(t *testing.T, test func(w *world, g *gate)) {
	bubble(t, func(w *world) {
		w.schedule(client.Spec{Task: "other", In: time.Hour}) // so that Redis knows the scripts
		w.define(client.Threshold{ID: "hits", Task: "mail", Count: 99, Within: time.Hour})
		w.hit("hits")
		g := &gate{through: make(chan struct{})}
		w.rdb.AddHook(g)
		test(w, g)
	})
}

func take(answers <-chan string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = <-answers
	}
	slices.Sort(list)
	return list
}

func TestConcurrentCallersShareCalls(t *testing.T) {
	gated(t, func(w *world, g *gate) {
		answers := make(chan string, 9)
		w.callers(w.Context(), answers, "a", "b", "c", "d", "e", "e")
		equal(w, "calls on their way", g.calls, 2)
		close(g.through)
		exists := fmt.Sprintf("e %v: %q is due %s", client.ErrExists, "e", w.now().Add(time.Hour).UTC().Format(time.RFC3339))
		equal(w, "answers", take(answers, 6), []string{"a <nil>", "b <nil>", "c <nil>", "d <nil>", "e <nil>", exists})
		equal(w, "calls", g.calls, 3)
	})
}

func TestConcurrentHitsShareCalls(t *testing.T) {
	gated(t, func(w *world, g *gate) {
		answers, hit := make(chan string, 9), client.Hit{ID: "hits"}
		w.hitters(w.Context(), answers, hit, hit, hit, client.Hit{ID: "none"}, client.Hit{ID: "hits", By: 2}, client.Hit{ID: "hits", RequestID: "r"})
		equal(w, "calls on their way", g.calls, 3) // one for the request alone
		leaving, leave := context.WithCancel(w.Context())
		w.hitters(leaving, answers, hit)
		leave()
		equal(w, "left", take(answers, 1), []string{"0 " + context.Canceled.Error()})
		close(g.through)
		got := strings.Join(take(answers, 6), "; ")
		equal(w, "refused", strings.Count(got, client.ErrNoThreshold.Error()), 1)
		equal(w, "calls", g.calls, 4)
		equal(w, "counted", w.hit("hits").Count, 1+3+2+1+1)
	})
}

// Who makes a call again whose leader left when it was done already counts nothing
// twice.
func TestHitsOfACallThatIsMadeAgainCountOnce(t *testing.T) {
	gated(t, func(w *world, g *gate) {
		answers, hit := make(chan string, 9), client.Hit{ID: "hits"}
		w.hitters(w.Context(), answers, hit, hit)
		leaving, leave := context.WithCancel(w.Context())
		w.hitters(leaving, answers, hit)
		w.hitters(w.Context(), answers, hit) // it joins the call of the one before
		for range 2 {
			g.through <- struct{}{}
			take(answers, 1)
			synctest.Wait()
		}
		g.done = func(cmd redis.Cmder) {
			g.done = nil
			leave()
			cmd.SetErr(context.Canceled)
		}
		close(g.through)
		got := take(answers, 2) // the leader's may be there before it has left
		if left := "0 " + context.Canceled.Error(); got[0] != left && got[0] != "4 <nil>" {
			w.Errorf("the leader is answered %q", got[0])
		}
		equal(w, "the other", got[1], "5 <nil>")
		equal(w, "counted", w.hit("hits").Count, 6)
	})
}

func TestACallerWhoLeavesDoesNotTakeTheOthersAlong(t *testing.T) {
	gated(t, func(w *world, g *gate) {
		answers := make(chan string, 9)
		w.callers(w.Context(), answers, "a", "b")
		leaving, leave := context.WithCancel(w.Context())
		w.callers(leaving, answers, "leader")
		w.callers(w.Context(), answers, "c", "d")
		g.through <- struct{}{} // one is answered, and the leader's call goes out
		equal(w, "first", len(take(answers, 1)), 1)
		synctest.Wait()
		leave()
		synctest.Wait()
		close(g.through)
		left := take(answers, 4)
		equal(w, "answers", left[len(left)-3:], []string{"c <nil>", "d <nil>", "leader " + context.Canceled.Error()})
		for _, id := range []string{"leader", "c", "d"} {
			equal(w, id, len(must(w.c.Get(w.Context(), id))(w)), 1)
		}
	})
}

// A job is never armed whose caller's context ended before anything was sent, whoever
// goes on with the call; and never with what became of its payload since.
func TestWhatACallerGaveUpIsNotSentLater(t *testing.T) {
	for _, others := range [][]string{{"c"}, {"c", "d"}, nil} {
		gated(t, func(w *world, g *gate) {
			answers := make(chan string, 9)
			w.callers(w.Context(), answers, "a", "b")
			leaving, leave := context.WithCancel(w.Context())
			w.callers(leaving, answers, "left")
			w.callers(w.Context(), answers, others...) // they join its call
			leave()
			equal(w, "answer", take(answers, 1), []string{"left " + context.Canceled.Error()})
			w.callers(leaving, answers, "late")
			equal(w, "answer", take(answers, 1), []string{"late " + context.Canceled.Error()})
			w.callers(w.Context(), answers, "e")
			close(g.through)
			take(answers, 3+len(others))
			for _, id := range []string{"left", "late"} {
				if _, err := w.c.Get(w.Context(), id); !errors.Is(err, client.ErrNotFound) {
					w.Errorf("%q, which its caller gave up: %v", id, err)
				}
			}
			for _, id := range append(others, "a", "b", "e") {
				equal(w, id, len(must(w.c.Get(w.Context(), id))(w)), 1)
			}
		})
	}
}

func TestAPayloadIsItsCallersWhenTheCallReturns(t *testing.T) {
	gated(t, func(w *world, g *gate) {
		answers := make(chan string, 9)
		w.callers(w.Context(), answers, "a")
		leaving, leave := context.WithCancel(w.Context())
		payload := []byte("mine")
		go func() {
			_, err := w.c.Schedule(leaving, client.Spec{ID: "left", Task: "mail", Payload: payload, In: time.Hour})
			answers <- fmt.Sprint("left ", err)
		}()
		synctest.Wait() // its call is on its way
		leave()
		equal(w, "answer", take(answers, 1), []string{"left " + context.Canceled.Error()})
		copy(payload, "EVIL")
		close(g.through)
		take(answers, 1)
		if jobs, err := w.c.Get(w.Context(), "left"); err == nil && string(jobs[0].Payload) != "mine" {
			w.Errorf("armed with %q", jobs[0].Payload)
		}
	})
}

// An answer that is there is given, whatever became of the context meanwhile.
func TestAnAnswerIsNotThrownAway(t *testing.T) {
	for range 30 {
		gated(t, func(w *world, g *gate) {
			ctx, end := context.WithCancel(w.Context())
			w.rdb.AddHook(endAfter{end})
			close(g.through)
			if _, err := w.c.Schedule(ctx, client.Spec{ID: "a", Task: "mail"}); err != nil {
				w.Errorf("answered, then ended: %v", err)
			}
		})
	}
}

// endAfter ends a context once a script is answered.
type endAfter struct{ end func() }

func (e endAfter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e endAfter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (e endAfter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" {
			e.end()
		}
		return err
	}
}

func TestAPanicOfALeaderLeavesNobodyStuck(t *testing.T) {
	gated(t, func(w *world, g *gate) {
		answers := make(chan string, 9)
		w.rdb.AddHook(panicOnce{&sync.Once{}})
		go func() {
			defer func() { answers <- fmt.Sprint("a ", recover()) }()
			_, _ = w.c.Schedule(w.Context(), client.Spec{ID: "a", Task: "mail", In: time.Hour})
		}()
		close(g.through)
		equal(w, "the leader", take(answers, 1), []string{"a of a hook"})
		w.callers(w.Context(), answers, "b")
		equal(w, "the next", take(answers, 1), []string{"b <nil>"})
	})
}

// panicOnce panics in the first script.
type panicOnce struct{ once *sync.Once }

func (p panicOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p panicOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p panicOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			p.once.Do(func() { panic("of a hook") })
		}
		return next(ctx, cmd)
	}
}
