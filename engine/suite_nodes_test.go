package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

func oneClaim(w *world) {
	const jobs = 300
	var nodes []*node
	ran := make(chan registry.Job, 10*jobs)
	for range 3 {
		nodes = append(nodes, w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
			ran <- job
			return nil
		}}), engine.Config{}))
	}
	for i := range jobs {
		id := fmt.Sprint("job", i)
		if i%2 == 0 {
			w.schedule(client.Spec{ID: id, Task: "mail", In: w.span})
		} else {
			w.setBare(id, "mail", w.span)
		}
	}
	seen := make(map[string]bool)
	for range jobs {
		job := await(w, ran, "all jobs")
		if seen[job.ID] || seen[job.RunID] {
			w.Fatalf("%s, or another job as run %s, ran before", job.ID, job.RunID)
		}
		seen[job.ID], seen[job.RunID] = true, true
	}
	for _, n := range nodes {
		n.stop()
	}
	if len(ran) > 0 {
		w.Errorf("%d runs too many", len(ran))
	}
}

func servesOwnTasks(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "cancel"})
	w.setBare("bare", "cancel", w.span/2)
	n.firedNothing(w.span)
	if got := w.states("a"); !slices.Equal(got, []client.State{client.Pending}) {
		w.Errorf("nobody serves it, and it is %v", got)
	}
	other := w.start(tasks(map[string]registry.Func{"cancel": nop}), engine.Config{})
	ids := []string{other.fired().Job.ID, other.fired().Job.ID}
	if slices.Sort(ids); !slices.Equal(ids, []string{"a", "bare"}) {
		w.Errorf("fired %v", ids)
	}
}

func pausedTaskWaits(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	if was, err := w.jobs.Pause(w.Context(), "mail"); !was || err != nil {
		w.Errorf("pause: %v, %v", was, err)
	}
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	n.firedNothing(w.span)
	if was, err := w.jobs.Resume(w.Context(), "mail"); !was || err != nil {
		w.Errorf("resume: %v, %v", was, err)
	}
	if f := n.fired(); f.Job.ID != "a" {
		w.Errorf("fired %+v", f)
	}
}

func timeoutEndsHandler(w *world) {
	reg := registry.New()
	reg.Register("mail", registry.Func(func(ctx context.Context, _ registry.Job) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}), registry.Options{Timeout: w.span})
	n := w.start(reg, engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	if f := n.fired(); f.Outcome != engine.Retried || !errors.Is(f.Err, engine.ErrTimeout) || f.Took < w.span {
		w.Errorf("fired %+v", f)
	}
}

func concurrencyHolds(w *world) {
	var running, most atomic.Int64
	release := make(chan struct{})
	reg := registry.New()
	reg.Register("slow", registry.Func(func(context.Context, registry.Job) error {
		most.Store(max(most.Load(), running.Add(1)))
		<-release
		running.Add(-1)
		return nil
	}), registry.Options{Concurrency: 2})
	reg.Register("marker", nop, registry.Options{})
	n := w.start(reg, engine.Config{Concurrency: 4})
	for i := range 10 {
		w.schedule(client.Spec{ID: fmt.Sprint(i), Task: "slow"})
	}
	for range 20 {
		n.firedNothing(0)
	}
	close(release)
	for range 10 {
		n.fired()
	}
	if most.Load() != 2 {
		w.Errorf("%d ran at a time, want 2", most.Load())
	}
}

func shutdownGivesBack(w *world) {
	started := make(chan registry.Job, 10)
	stuck := func(ctx context.Context, job registry.Job) error {
		started <- job
		<-ctx.Done()
		return context.Cause(ctx)
	}
	first := w.start(tasks(map[string]registry.Func{"mail": stuck}), engine.Config{ShutdownGrace: w.span / 100})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	await(w, started, "the run")
	first.stop()
	if f := first.fired(); f.Outcome != engine.Returned {
		w.Errorf("settled %+v", f)
	}
	second := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	if f := second.fired(); f.Job.ID != "a" || f.Job.Attempt != 1 || f.Outcome != engine.Done {
		w.Errorf("fired %+v", f)
	}
	if stats, err := w.jobs.Stats(w.Context()); err != nil || len(stats.Nodes) != 1 {
		w.Errorf("%d nodes, %v; the first should have left", len(stats.Nodes), err)
	}
}

func shutdownWaits(w *world) {
	started, release := make(chan registry.Job, 1), make(chan struct{})
	n := w.start(tasks(map[string]registry.Func{"mail": func(context.Context, registry.Job) error {
		started <- registry.Job{}
		<-release
		return nil
	}}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	await(w, started, "the run")
	time.AfterFunc(w.span/1000, func() { close(release) })
	n.stop()
	if f := n.fired(); f.Outcome != engine.Done {
		w.Errorf("settled %+v", f)
	}
	if got := w.states("a"); got != nil {
		w.Errorf("left %v", got)
	}
}

func foreignExpiriesIgnored(w *world) {
	log := &record{}
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{IDPrefix: "mine:", Logger: log.logger()})
	jobs, err := client.New(w.rdb, client.Config{IDPrefix: "mine:"})
	if err != nil {
		w.Fatal(err)
	}
	for i := range 1000 {
		w.set(w.fuse(fmt.Sprint("theirs:", i)), "x", w.span/2)
	}
	w.set("untagged", "x", w.span/2)
	w.set("class:untagged", "mail", 0)
	w.setBare("theirs:class", "mail", w.span/2) // another tenant's job
	w.set(w.names("").Of("thing"), "x", w.span/2)
	w.set(w.names("").Class("keyfuse:thing"), "mail", 0)
	before := log.lines.Load()
	if _, err := jobs.Schedule(w.Context(), client.Spec{ID: "mine:1", Task: "mail", In: w.span}); err != nil {
		w.Fatal(err)
	}
	if f := n.fired(); f.Job.ID != "mine:1" {
		w.Errorf("fired %+v", f)
	}
	if lines := log.lines.Load() - before; lines > 10 {
		w.Errorf("%d lines in the log", lines)
	}
	if w.left(w.class("theirs:class"), "class:untagged") != 2 {
		w.Error("another tenant's class key is gone")
	}
}

func badClassLeftAlone(w *world) {
	class := w.names("").Class // of one partition, for one sweep
	w.set(class("empty"), "", 0)
	w.set(class("nameless"), " payload", 0)
	w.set(class("long"), strings.Repeat("x", 129), 0)
	w.rdb.LPush(w.Context(), class("list"), "mail")
	w.set(class("class:nested"), "mail", 0)
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	if s := n.sweptSome(); s.Refused != 4 || s.Indexed != 0 {
		w.Errorf("swept %+v", s)
	}
	w.setBare("odd", " ", w.span/2)
	n.firedNothing(w.span)
	if left := w.left(class("empty"), class("nameless"), class("long"), class("list"), class("class:nested"), w.class("odd")); left != 6 {
		w.Errorf("%d of 6 are left", left)
	}
}

func bigPayloadLeftAlone(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{MaxPayload: 100})
	w.setBare("bare", "mail "+strings.Repeat("x", 101), w.span)
	w.schedule(client.Spec{ID: "own", Task: "mail", Payload: make([]byte, 101), In: w.span / 2})
	w.schedule(client.Spec{ID: "fits", Task: "mail", Payload: make([]byte, 100), In: 2 * w.span})
	if f := n.fired(); f.Job.ID != "fits" {
		w.Errorf("fired %+v", f)
	}
	if w.left(w.class("bare"), w.class("own")) != 2 {
		w.Error("a class key is gone")
	}
	_, err := w.jobs.Schedule(w.Context(), client.Spec{Task: "mail", Payload: make([]byte, client.DefaultMaxPayload+1)})
	if !errors.Is(err, client.ErrInvalid) {
		w.Errorf("scheduled over the limit: %v", err)
	}
}

func anyBytes(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	for _, id := range []string{"\x00", "a\x00mail x", "a", "<script>", "\xff\xfe\r\n", "a b", strings.Repeat("é", 256), "{tag}x", "*?[x]\\"} {
		payload := "\x00\xff " + id + "\n"
		w.schedule(client.Spec{ID: id, Task: "mail", Payload: []byte(payload), In: w.span})
		if jobs, err := w.jobs.Get(w.Context(), id); err != nil || len(jobs) != 1 || string(jobs[0].Payload) != payload {
			w.Errorf("%q: %+v, %v", id, jobs, err)
		}
		if f := n.fired(); f.Job.ID != id || string(f.Job.Payload) != payload {
			w.Errorf("%q: fired %+v", id, f)
		}
		bare := "bare" + id
		if len(bare) > client.MaxID {
			continue
		}
		w.setBare(bare, "mail "+payload, w.span)
		if f := n.fired(); f.Job.ID != bare || string(f.Job.Payload) != payload {
			w.Errorf("%q: fired %+v", bare, f)
		}
	}
}

func eventsAlone(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	for range w.space.All() {
		await(w, n.sweeps, "the first sweep; the next one is seconds away")
	}
	w.schedule(client.Spec{ID: "own", Task: "mail", In: time.Second})
	w.setBare("bare", "mail", 2*time.Second)
	w.rdb.Del(w.Context(), w.names("own").OfTask("due", "mail"))
	for _, want := range []string{"own", "bare"} {
		if f := n.fired(); f.Job.ID != want || f.Source != "event" {
			w.Errorf("fired %+v, want %s", f, want)
		}
	}
}

func indexAlone(w *world) {
	w.setFlags("")
	w.setBare("bare", "mail", 10*w.span)
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Notifications: engine.Off})
	if s := n.sweptSome(); s.Indexed != 1 {
		w.Errorf("swept %+v", s)
	}
	w.schedule(client.Spec{ID: "own", Task: "mail", In: 20 * w.span})
	for _, want := range []string{"bare", "own"} {
		if f := n.fired(); f.Job.ID != want || f.Source != "index" || f.Late < 0 {
			w.Errorf("fired %+v, want %s", f, want)
		}
	}
	if got := w.flags("bare"); got != "" {
		w.Errorf("the flags were set to %q", got)
	}
}

func earlierJobWakes(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Notifications: engine.Off})
	w.schedule(client.Spec{ID: "far", Task: "mail", In: 100 * w.span})
	s := w.schedule(client.Spec{ID: "near", Task: "mail", In: 10 * time.Millisecond})
	if f := n.fired(); f.Job.ID != "near" || !w.real && f.Late > 5*time.Millisecond {
		w.Errorf("fired %+v, due %s", f, s.Due)
	}
}
