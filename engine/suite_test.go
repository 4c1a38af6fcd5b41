package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/registry"
)

// suite is what must hold on every Redis. TestBubble runs it on the embedded
// one in fake time, TestRedis on real redis-server processes.
var suite = []struct {
	name string
	test func(w *world)
}{
	{"a job runs once, with its payload, at its due time and not before", runsOnTime},
	{"a job that is due in the past runs at once", runsPastAtOnce},
	{"two SETs by any client are a job", runsBareJob},
	{"jobs that came due while no node was there run once at the next start", runsMissedJobs},
	{"a cancelled job never runs", cancelWins},
	{"a raw client cancels by deleting the class key", rawCancelWins},
	{"a rescheduled job runs at its new time only", rescheduleMoves},
	{"a fuse that is set again by any client wins over the index", rawRescheduleWins},
	{"an immortal fuse holds its job until it gets a TTL", immortalFuseHolds},
	{"a job can be fired by hand", fireNow},
	{"an id that is pending is refused, replaced or kept", ifExists},
	{"a key with other data is never overwritten", foreignKeyStays},
	{"an id is free again while its run goes on", idIsFreeWhileRunning},
	{"a failed run is tried again, and dead after its last attempt", retriesThenDies},
	{"dead letters are requeued with all their attempts, or deleted", deadLetters},
	{"a handler chooses its delay, the dead letters or to drop the job", verdicts},
	{"panics and ended goroutines are failures, and the others go on", panicsAreFailures},
	{"a task that runs at most once dies with its first failure", atMostOnce},
	{"a timeout ends the handler's context", timeoutEndsHandler},
	{"many nodes, one claim", oneClaim},
	{"a node claims only tasks that it serves", servesOwnTasks},
	{"a paused task waits, the others run", pausedTaskWaits},
	{"a task's concurrency holds, and does not hold back others", concurrencyHolds},
	{"runs that wait for their own task's limit hold back no other task", limitHoldsNobodyBack},
	{"a flood of one task leaves the others their turns", floodLeavesTurns},
	{"a failed run is tried again when its delay is over", retriesOnTime},
	{"a node that wants no events is not degraded", withoutEventsByChoice},
	{"shutting down gives back what can't end, as no attempt", shutdownGivesBack},
	{"shutting down waits for handlers", shutdownWaits},
	{"foreign keys that expire are no jobs", foreignExpiriesIgnored},
	{"class keys that make no job are left alone", badClassLeftAlone},
	{"a payload over the limit is left alone", bigPayloadLeftAlone},
	{"ids and payloads are any bytes", anyBytes},
	{"without the index, events alone fire jobs", eventsAlone},
	{"without events, the index fires jobs on time and the sweep finds bare ones", indexAlone},
	{"a job earlier than all others wakes a sleeping node", earlierJobWakes},
	{"a trace comes to each attempt, and into the dead letters", traceComesAlong},
	{"an observer is told of claims, outcomes, events and the canary", observerIsTold},
}

func TestBubble(t *testing.T) {
	for _, s := range suite {
		t.Run(s.name, func(t *testing.T) { inBubble(t, s.test) })
	}
}

// TestCluster has one cluster for all that must hold, which comes one after the
// other: to start one takes seconds.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	for _, s := range slices.Concat(suite, thresholds) {
		t.Run(s.name, func(t *testing.T) {
			w := newClusterWorld(t, cluster)
			w.servers(func(ctx context.Context, rdb *redis.Client) error { return rdb.FlushAll(ctx).Err() })
			w.setFlags("Ex")
			w.leastRights()
			s.test(w)
		})
	}
}

func TestRedis(t *testing.T) {
	for _, s := range suite {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			onRedis(t, func(w *world) {
				w.leastRights()
				s.test(w)
			})
		})
	}
}

func runsOnTime(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	s := w.schedule(client.Spec{ID: "order:1", Task: "mail", Payload: []byte("hello"), In: w.span})
	if got := w.states("order:1"); !slices.Equal(got, []client.State{client.Pending}) {
		w.Errorf("before: %v", got)
	}
	f := n.fired()
	if f.Job.ID != "order:1" || string(f.Job.Payload) != "hello" || f.Job.Attempt != 1 || f.Outcome != engine.Done ||
		f.Source != "index" || f.Job.Reason != registry.ReasonTimer || !f.Job.Due.Equal(s.Due) {
		w.Errorf("fired %+v, scheduled %+v", f, s)
	}
	if f.Late < 0 {
		w.Errorf("early by %s", -f.Late)
	}
	n.firedNothing(w.span)
	if got := w.states("order:1"); got != nil {
		w.Errorf("after: %v", got)
	}
}

func runsPastAtOnce(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", At: time.Now().Add(-w.span)})
	w.schedule(client.Spec{ID: "b", Task: "mail"})
	ids := []string{n.fired().Job.ID, n.fired().Job.ID}
	if slices.Sort(ids); !slices.Equal(ids, []string{"a", "b"}) {
		w.Errorf("fired %v", ids)
	}
}

func runsBareJob(w *world) {
	n := w.start(tasks(map[string]registry.Func{"cancel-order": nop}), engine.Config{})
	w.set(w.fuse("order:42"), "order:42", w.span)
	w.set(w.class("order:42"), "cancel-order 42 €", 0)
	if f := n.fired(); f.Job.ID != "order:42" || string(f.Job.Payload) != "42 €" || f.Late < 0 {
		w.Errorf("fired %+v", f)
	}
	n.firedNothing(w.span)
}

func runsMissedJobs(w *world) {
	w.setBare("expired", "mail", w.span)
	w.schedule(client.Spec{ID: "own", Task: "mail", In: w.span})
	<-time.After(2 * w.span)
	w.setBare("coming", "mail", w.span)
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	var ids []string
	for range 3 {
		ids = append(ids, n.fired().Job.ID)
	}
	if slices.Sort(ids); !slices.Equal(ids, []string{"coming", "expired", "own"}) {
		w.Errorf("fired %v", ids)
	}
	n.firedNothing(w.span)
}

func cancelWins(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", In: w.span})
	if err := w.jobs.Cancel(w.Context(), "a"); err != nil {
		w.Error(err)
	}
	if err := w.jobs.Cancel(w.Context(), "a"); !errors.Is(err, client.ErrNotFound) {
		w.Errorf("cancelled twice: %v", err)
	}
	n.firedNothing(2 * w.span)
	if n := w.left(w.fuse("a"), w.class("a")); n != 0 {
		w.Errorf("%d keys are left", n)
	}
}

func rawCancelWins(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", In: w.span})
	w.rdb.Del(w.Context(), w.class("a"))
	n.firedNothing(2 * w.span)
}

func rescheduleMoves(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "later", Task: "mail", In: w.span})
	w.schedule(client.Spec{ID: "sooner", Task: "mail", In: 9 * w.span})
	if job, err := w.jobs.Reschedule(w.Context(), "later", 3*w.span, time.Time{}); err != nil || job.Task != "mail" {
		w.Errorf("%+v, %v", job, err)
	}
	if _, err := w.jobs.Reschedule(w.Context(), "sooner", w.span/2, time.Time{}); err != nil {
		w.Error(err)
	}
	if _, err := w.jobs.Reschedule(w.Context(), "none", w.span, time.Time{}); !errors.Is(err, client.ErrNotFound) {
		w.Errorf("moved nothing: %v", err)
	}
	for _, want := range []string{"sooner", "later"} {
		if f := n.fired(); f.Job.ID != want || f.Late < 0 {
			w.Errorf("fired %+v, want %s", f, want)
		}
	}
	n.firedNothing(7 * w.span)
}

func rawRescheduleWins(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", In: w.span})
	w.set(w.fuse("a"), "again", 3*w.span)
	n.firedNothing(2 * w.span)
	if f := n.fired(); f.Job.ID != "a" || f.Late < 0 {
		w.Errorf("fired %+v", f)
	}
}

func immortalFuseHolds(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", In: w.span})
	w.rdb.Persist(w.Context(), w.fuse("a"))
	n.firedNothing(2 * w.span)
	w.rdb.PExpire(w.Context(), w.fuse("a"), w.span)
	if f := n.fired(); f.Job.ID != "a" {
		w.Errorf("fired %+v", f)
	}
}

func fireNow(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", In: 100 * w.span})
	if _, err := w.jobs.Fire(w.Context(), "a"); err != nil {
		w.Fatal(err)
	}
	if f := n.fired(); f.Job.ID != "a" || f.Job.Reason != registry.ReasonManual || f.Source != "manual" {
		w.Errorf("fired %+v", f)
	}
	if _, err := w.jobs.Fire(w.Context(), "a"); !errors.Is(err, client.ErrNotFound) {
		w.Errorf("fired twice: %v", err)
	}
}

func ifExists(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop, "call": nop}), engine.Config{})
	first := w.schedule(client.Spec{ID: "a", Task: "mail", In: 2 * w.span, Payload: []byte("1")})
	if s, err := w.jobs.Schedule(w.Context(), client.Spec{ID: "a", Task: "mail"}); !errors.Is(err, client.ErrExists) || !s.Due.Equal(first.Due) {
		w.Errorf("fail: %+v, %v", s, err)
	}
	if s := w.schedule(client.Spec{ID: "a", Task: "mail", IfExists: client.Keep}); !s.Kept || !s.Due.Equal(first.Due) {
		w.Errorf("keep: %+v", s)
	}
	if s := w.schedule(client.Spec{ID: "a", Task: "call", In: w.span, Payload: []byte("2"), IfExists: client.Replace}); !s.Replaced {
		w.Errorf("replace: %+v", s)
	}
	if f := n.fired(); f.Job.Task != "call" || string(f.Job.Payload) != "2" {
		w.Errorf("fired %+v", f)
	}
	n.firedNothing(2 * w.span)
}

func foreignKeyStays(w *world) {
	ctx := w.Context()
	w.set(w.fuse("string"), "data", 0)
	w.rdb.HSet(ctx, w.fuse("hash"), "k", "v")
	w.rdb.SAdd(ctx, w.class("set"), "v")
	for _, id := range []string{"string", "hash", "set"} {
		for _, mode := range []client.IfExists{client.Fail, client.Replace, client.Keep} {
			_, err := w.jobs.Schedule(ctx, client.Spec{ID: id, Task: "mail", In: w.span, IfExists: mode})
			if !errors.Is(err, client.ErrForeignKey) {
				w.Errorf("%s, %s: %v", id, mode, err)
			}
		}
	}
	if got := w.rdb.Get(ctx, w.fuse("string")).Val() + w.rdb.HGet(ctx, w.fuse("hash"), "k").Val(); got != "datav" {
		w.Errorf("the keys hold %q", got)
	}
}

func idIsFreeWhileRunning(w *world) {
	started, release := make(chan registry.Job, 2), make(chan struct{}, 2)
	n := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		started <- job
		<-release
		return nil
	}}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", Payload: []byte("1")})
	first := await(w, started, "the first run")
	w.schedule(client.Spec{ID: "a", Task: "mail", In: w.span, Payload: []byte("2")})
	if got := w.states("a"); !slices.Equal(got, []client.State{client.Pending, client.Running}) {
		w.Errorf("states %v", got)
	}
	release <- struct{}{}
	n.fired()
	if got := w.states("a"); !slices.Equal(got, []client.State{client.Pending}) {
		w.Errorf("the old run's end left %v", got)
	}
	second := await(w, started, "the second run")
	release <- struct{}{}
	if n.fired(); string(second.Payload) != "2" || second.RunID == first.RunID {
		w.Errorf("%+v after %+v", second, first)
	}
}

func retriesThenDies(w *world) {
	reg := registry.New()
	boom := errors.New("boom")
	reg.Register("mail", registry.Func(func(context.Context, registry.Job) error { return boom }),
		registry.Options{Retries: registry.Retries{Max: 2, Initial: w.span / 4, Jitter: -1}})
	n := w.start(reg, engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", Payload: []byte("p")})
	var runs []string
	for attempt, outcome := range []engine.Outcome{engine.Retried, engine.Retried, engine.Died} {
		f := n.fired()
		runs = append(runs, f.Job.RunID)
		if f.Job.Attempt != attempt+1 || f.Outcome != outcome || !errors.Is(f.Err, boom) || string(f.Job.Payload) != "p" {
			w.Errorf("attempt %d: %+v", attempt+1, f)
		}
	}
	if runs[0] != runs[1] || runs[1] != runs[2] {
		w.Errorf("run ids differ: %v", runs)
	}
	jobs, err := w.jobs.Get(w.Context(), "a")
	if err != nil || len(jobs) != 1 || jobs[0].State != client.Dead || jobs[0].LastError != "boom" || jobs[0].Attempt != 3 || string(jobs[0].Payload) != "p" {
		w.Errorf("dead: %+v, %v", jobs, err)
	}
}

func deadLetters(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		if string(job.Payload) == "good" {
			return nil
		}
		return registry.Dead(errors.New("boom"))
	}}), engine.Config{})
	for i := range 250 {
		w.schedule(client.Spec{ID: fmt.Sprint("job", i), Task: "mail"})
	}
	for range 250 {
		if f := n.fired(); f.Outcome != engine.Died {
			w.Fatalf("fired %+v", f)
		}
	}
	if err := w.jobs.Cancel(w.Context(), "job1"); !errors.Is(err, client.ErrDead) {
		w.Errorf("cancel: %v", err)
	}
	if k, err := w.jobs.RequeueDead(w.Context(), client.DeadFilter{IDs: []string{"job1", "none"}}); k != 1 || err != nil {
		w.Errorf("requeued %d, %v", k, err)
	}
	if f := n.fired(); f.Job.ID != "job1" || f.Job.Attempt != 1 || f.Outcome != engine.Died {
		w.Errorf("requeued %+v", f)
	}
	if k, err := w.jobs.DeleteDead(w.Context(), client.DeadFilter{Task: "mail"}); k != 250 || err != nil {
		w.Errorf("deleted %d, %v", k, err)
	}
	if got := w.states("job1"); got != nil {
		w.Errorf("after deletion: %v", got)
	}
}

func verdicts(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		boom := errors.New("boom")
		switch {
		case job.ID == "dead":
			return registry.Dead(boom)
		case job.ID == "discard":
			return registry.Discard(boom)
		case job.Attempt == 1:
			return registry.RetryAfter(2*w.span, boom)
		}
		return nil
	}}), engine.Config{})
	for id, want := range map[string]engine.Outcome{"dead": engine.Died, "discard": engine.Discarded, "after": engine.Retried} {
		w.schedule(client.Spec{ID: id, Task: "mail"})
		if f := n.fired(); f.Outcome != want || f.Job.ID != id {
			w.Errorf("%s: %+v", id, f)
		}
	}
	n.firedNothing(w.span)
	if f := n.fired(); f.Job.ID != "after" || f.Job.Attempt != 2 || f.Outcome != engine.Done {
		w.Errorf("after the delay: %+v", f)
	}
	if got := w.states("discard"); got != nil {
		w.Errorf("discarded: %v", got)
	}
}

func panicsAreFailures(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		switch job.ID {
		case "panics":
			panic("boom")
		case "exits":
			runtime.Goexit()
		}
		return nil
	}}), engine.Config{Concurrency: 1})
	w.schedule(client.Spec{ID: "panics", Task: "mail"})
	w.schedule(client.Spec{ID: "exits", Task: "mail"})
	for i := range 10 {
		w.schedule(client.Spec{ID: fmt.Sprint("fine", i), Task: "mail"})
	}
	outcomes := make(map[engine.Outcome]int)
	for range 12 {
		outcomes[n.fired().Outcome]++
	}
	if outcomes[engine.Retried] != 2 || outcomes[engine.Done] != 10 {
		w.Errorf("outcomes %v", outcomes)
	}
}

func atMostOnce(w *world) {
	reg := registry.New()
	reg.Register("mail", registry.Func(func(context.Context, registry.Job) error { return errors.New("boom") }),
		registry.Options{Delivery: registry.AtMostOnce})
	n := w.start(reg, engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	if f := n.fired(); f.Outcome != engine.Died || f.Job.Attempt != 1 {
		w.Errorf("fired %+v", f)
	}
}
