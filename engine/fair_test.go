package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// flood schedules many jobs of one task, due a second from now. In a cluster they
// are in one partition: partitions have no turns.
func (w *world) flood(task string, jobs, payload int) {
	w.Helper()
	for i := range jobs {
		w.schedule(client.Spec{ID: fmt.Sprint("{flood}", task, i), Task: task, Payload: make([]byte, payload), In: time.Second})
	}
}

func floodLeavesTurns(w *world) {
	for _, flood := range []struct{ place, tasks, jobs, payload, concurrency int }{
		{0, 1, 30, 300_000, 1},
		{1, 2, 100, 10, 1},
		{2, 3, 100, 10_000, 1},
		{3, 4, 40, 300_000, 2},
	} {
		handlers := make(map[string]registry.Func)
		for i := range flood.tasks {
			handlers[fmt.Sprint("flood", i)] = func(context.Context, registry.Job) error {
				<-time.After(10 * time.Millisecond)
				return nil
			}
		}
		w.flood(fmt.Sprint("flood", flood.place), flood.jobs, flood.payload)
		w.schedule(client.Spec{ID: "{flood}last", Task: "marker", In: time.Second})
		<-time.After(time.Second)
		n := w.start(tasks(handlers), engine.Config{Concurrency: flood.concurrency, Lease: calm})
		before := 0
		for n.fired().Job.ID != "{flood}last" {
			before++
		}
		if before > flood.jobs/2 {
			w.Errorf("%+v: another task's job ran after %d of it", flood, before)
		}
		for range flood.jobs - before {
			n.fired()
		}
		n.stop()
	}
}

func limitHoldsNobodyBack(w *world) {
	reg := registry.New()
	release := make(chan struct{})
	reg.Register("hang", registry.Func(func(_ context.Context, job registry.Job) error {
		if job.ID != "quick" { // which makes the task look like one to claim far ahead of
			<-release
		}
		return nil
	}), registry.Options{Concurrency: 1, Timeout: -1})
	reg.Register("work", registry.Func(func(context.Context, registry.Job) error {
		<-time.After(100 * time.Millisecond)
		return nil
	}), registry.Options{})
	n := w.start(reg, engine.Config{Lease: calm})
	defer n.stop()
	defer close(release)
	w.schedule(client.Spec{ID: "quick", Task: "hang"})
	n.fired()
	w.flood("hang", 500, 0)
	<-time.After(1500 * time.Millisecond)
	for i := range 5 {
		w.schedule(client.Spec{ID: fmt.Sprint(i), Task: "work"})
		if f := n.fired(); f.Job.Task != "work" || f.Late > time.Second {
			w.Errorf("fired %+v", f)
		}
	}
}

func retriesOnTime(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		if job.Attempt == 1 {
			return registry.RetryAfter(time.Second, errors.New("boom"))
		}
		return nil
	}}), engine.Config{Lease: calm})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	first := n.fired()
	second := n.fired()
	if wait := second.Late - first.Late; wait < time.Second || wait > 2*time.Second {
		w.Errorf("tried again after %s, want 1s", wait)
	}
}

func withoutEventsByChoice(w *world) {
	n := w.start(tasks(nil), engine.Config{Notifications: engine.Off})
	n.firedNothing(2 * w.lease)
	select {
	case why := <-n.degraded:
		w.Errorf("degraded: %q", why)
	default:
	}
}

// lostAnswer is a connection that loses the answer to the first claim that took
// something, and does not return before the claim's context ends.
type lostAnswer struct {
	w     *world
	deaf  bool // and to every later one
	took  chan struct{}
	first sync.Once
}

func (l *lostAnswer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lostAnswer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lostAnswer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		script, ok := cmd.(*redis.Cmd)
		if !ok {
			return err
		}
		answer, _ := script.Slice()
		if len(answer) <= 5 || answer[5] != "mail" { // the task of the first run
			return err
		}
		if l.deaf {
			err = io.EOF
		}
		l.first.Do(func() {
			close(l.took)
			<-ctx.Done()
			err = ctx.Err()
		})
		cmd.SetErr(err)
		return err
	}
}

// stopUnanswered stops a node in the middle of a claim, and returns the firing of
// its run by the next node.
func (w *world) stopUnanswered(deaf bool) engine.Firing {
	lost := &lostAnswer{w: w, deaf: deaf, took: make(chan struct{})}
	rdb := w.open()
	rdb.AddHook(lost)
	n := w.startOn(rdb, tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	await(w, lost.took, "the claim")
	n.stop()
	return w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{}).fired()
}

func claimUnansweredAtShutdown(w *world) {
	if f := w.stopUnanswered(false); f.Job.ID != "a" || f.Job.Attempt != 1 || f.Outcome != engine.Done {
		w.Errorf("fired %+v", f)
	}
}

func claimLostAtShutdown(w *world) {
	if f := w.stopUnanswered(true); f.Job.ID != "a" || f.Job.Attempt != 2 || f.Outcome != engine.Done {
		w.Errorf("fired %+v", f)
	}
}
