package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// deadline is a lease that ends within a test, and by when its runs must be
// elsewhere: a busy machine gets a margin.
func (w *world) deadline() (lease, within time.Duration) {
	if !w.real {
		return w.lease, w.lease
	}
	return 2 * time.Second, 6 * time.Second
}

// stuckOn is a handler that runs until its context ends if the job has this id,
// and gives the cause.
func stuckOn(id string, started chan<- registry.Job, ended chan<- error) registry.Func {
	return func(ctx context.Context, job registry.Job) error {
		if job.ID != id {
			return nil
		}
		started <- job
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}
}

func nodeOf(runID string) string {
	node, _, _ := strings.Cut(runID, ".")
	return node
}

func cutOffNode(w *world) {
	lease, within := w.deadline()
	started, ended := make(chan registry.Job, 1), make(chan error, 1)
	l := w.newLink()
	lost := w.startVia(l, tasks(map[string]registry.Func{"mail": stuckOn("a", started, ended)}), engine.Config{Lease: lease})
	w.schedule(client.Spec{ID: "a", Task: "mail", Payload: []byte("p")})
	first := await(w, started, "the first run")

	again := make(chan bool, 10)
	survivor := w.start(tasks(map[string]registry.Func{"mail": func(context.Context, registry.Job) error {
		again <- len(ended) == 1
		return nil
	}}), engine.Config{Lease: lease})
	l.cut()
	cut := time.Now()
	f := survivor.fired()
	if took := time.Since(cut); took > within {
		w.Errorf("ran elsewhere after %s, want %s", took, within)
	}
	if f.Job.ID != "a" || f.Job.RunID != first.RunID || f.Job.Attempt != 2 || string(f.Job.Payload) != "p" || f.Outcome != engine.Done {
		w.Errorf("the survivor fired %+v after %+v", f, first)
	}
	if !await(w, again, "the second run") {
		w.Error("it ran elsewhere before its first handler was told to stop")
	}
	if cause := await(w, ended, "the first handler's end"); !errors.Is(cause, engine.ErrLeaseLost) {
		w.Errorf("the first handler's context ended with %v", cause)
	}
	l.heal()
	if f := lost.fired(); f.Outcome != engine.Lost || f.Job.ID != "a" {
		w.Errorf("the node that was cut off settled %+v", f)
	}
	if got := w.states("a"); got != nil {
		w.Errorf("left %v", got)
	}
	survivor.stop()
	w.schedule(client.Spec{ID: "b", Task: "mail"})
	if f := lost.fired(); f.Job.ID != "b" || f.Outcome != engine.Done || nodeOf(f.Job.RunID) == nodeOf(first.RunID) {
		w.Errorf("back again it fired %+v; its name was %s", f, nodeOf(first.RunID))
	}
}

func waitingRunsOfLostLease(w *world) {
	lease, _ := w.deadline()
	started, ended := make(chan registry.Job, 10), make(chan error, 10)
	l := w.newLink()
	// One place, and short handlers so that it claims ahead, until one is long.
	n := w.startVia(l, tasks(map[string]registry.Func{"mail": stuckOn("a", started, ended)}), engine.Config{Lease: lease, Concurrency: 1})
	for range 20 {
		w.schedule(client.Spec{Task: "mail"})
		n.fired()
	}
	if _, err := w.jobs.Pause(w.Context(), "mail"); err != nil {
		w.Fatal(err)
	}
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	for i := range 5 {
		w.schedule(client.Spec{ID: fmt.Sprint("behind", i), Task: "mail"})
	}
	if _, err := w.jobs.Resume(w.Context(), "mail"); err != nil {
		w.Fatal(err)
	}
	await(w, started, "the long run")
	if got := w.states("behind0"); !slices.Equal(got, []client.State{client.Running}) {
		w.Fatalf("not claimed ahead, so this test shows nothing: %v", got)
	}
	l.cut()
	survivor := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: lease})
	for range 6 {
		survivor.fired()
	}
	await(w, ended, "the long run's end")
	l.heal()
	for range 6 {
		if f := n.fired(); f.Outcome != engine.Lost || f.Job.ID != "a" && !errors.Is(f.Err, engine.ErrLeaseLost) {
			w.Errorf("%s: %s, %v", f.Job.ID, f.Outcome, f.Err)
		}
	}
}

// death is a run that cut its own node off.
type death struct {
	job  registry.Job
	link *link
}

// deadly is a task "poison" whose handler cuts its own node off, for good as far
// as it is concerned.
func deadly(l *link, deaths chan<- death, opts registry.Options) *registry.Registry {
	reg := tasks(nil)
	opts.Timeout = -1
	reg.Register("poison", registry.Func(func(ctx context.Context, job registry.Job) error {
		l.cut()
		deaths <- death{job, l}
		<-ctx.Done()
		return context.Cause(ctx)
	}), opts)
	return reg
}

func poisonJob(w *world) {
	lease, _ := w.deadline()
	deaths := make(chan death, 100)
	opts := registry.Options{Retries: registry.Retries{Max: 2, Initial: time.Millisecond}}
	var nodes []*node
	for range 2 {
		l := w.newLink()
		nodes = append(nodes, w.startVia(l, deadly(l, deaths, opts), engine.Config{Lease: lease}))
	}
	fine := w.start(tasks(map[string]registry.Func{"fine": nop}), engine.Config{Lease: lease})
	w.schedule(client.Spec{ID: "poison", Task: "poison", Payload: []byte("p")})
	for attempt := 1; attempt <= 3; attempt++ {
		d := await(w, deaths, "an attempt")
		if d.job.Attempt != attempt || string(d.job.Payload) != "p" {
			w.Errorf("attempt %d: %+v", attempt, d.job)
		}
		w.schedule(client.Spec{ID: fmt.Sprint("fine", attempt), Task: "fine"})
		if f := fine.fired(); f.Outcome != engine.Done {
			w.Errorf("beside the poison: %+v", f)
		}
		for _, n := range nodes {
			if n.link != d.link {
				n.link.heal() // restarted, as it were
			}
		}
	}
	f := anyFired(w, "poison", nodes...)
	if f.Outcome != engine.Died || f.Job.Attempt != 4 || f.Took != 0 || !strings.Contains(f.Err.Error(), "gave up after 3 attempts") {
		w.Errorf("ended with %+v", f)
	}
	if len(deaths) > 0 {
		w.Errorf("run once more: %+v", (<-deaths).job)
	}
	jobs, err := w.jobs.Get(w.Context(), "poison")
	if err != nil || len(jobs) != 1 || jobs[0].State != client.Dead || string(jobs[0].Payload) != "p" {
		w.Errorf("dead letter: %+v, %v", jobs, err)
	}
}

// anyFired waits until one of two nodes settles an id, other than as lost.
func anyFired(w *world, id string, nodes ...*node) engine.Firing {
	w.Helper()
	timer := time.NewTimer(w.patience())
	defer timer.Stop()
	for {
		var f engine.Firing
		select {
		case f = <-nodes[0].firings:
		case f = <-nodes[1].firings:
		case <-timer.C:
			w.Fatalf("waited in vain for the end of %s", id)
		}
		if f.Job.ID == id && f.Outcome != engine.Lost {
			return f
		}
	}
}

func atMostOnceAfterDeath(w *world) {
	lease, _ := w.deadline()
	deaths := make(chan death, 100)
	l := w.newLink()
	opts := registry.Options{Delivery: registry.AtMostOnce}
	first := w.startVia(l, deadly(l, deaths, opts), engine.Config{Lease: lease})
	w.schedule(client.Spec{ID: "once", Task: "poison"})
	await(w, deaths, "the run")
	second := w.start(deadly(w.newLink(), deaths, opts), engine.Config{Lease: lease})
	if f := second.fired(); f.Outcome != engine.Died || f.Took != 0 || f.Job.Attempt != 2 {
		w.Errorf("ended with %+v", f)
	}
	if got := w.states("once"); !slices.Equal(got, []client.State{client.Dead}) {
		w.Errorf("is %v", got)
	}
	l.heal()
	if f := first.fired(); f.Outcome != engine.Lost {
		w.Errorf("the dead node settled %+v", f)
	}
	first.stop()
	second.stop()
	if len(deaths) > 0 {
		w.Errorf("run twice: %+v", (<-deaths).job)
	}
	third := w.start(tasks(map[string]registry.Func{"poison": nop}), engine.Config{Lease: lease})
	if n, err := w.jobs.RequeueDead(w.Context(), client.DeadFilter{IDs: []string{"once"}}); n != 1 || err != nil {
		w.Errorf("requeued %d, %v", n, err)
	}
	if f := third.fired(); f.Job.ID != "once" || f.Outcome != engine.Done || f.Job.Attempt != 1 {
		w.Errorf("requeued by hand: %+v", f)
	}
}
