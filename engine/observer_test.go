package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// seen is what an observer was told.
type seen struct {
	claimed, wrote chan int
	took, canary   chan time.Duration
	heard          chan struct{}
	gaps           chan struct{}
	failed         chan string
}

func observe() (seen, engine.Observer) {
	s := seen{
		claimed: make(chan int, 10_000), wrote: make(chan int, 10_000),
		took: make(chan time.Duration, 10_000), canary: make(chan time.Duration, 10_000),
		heard: make(chan struct{}, 10_000), gaps: make(chan struct{}, 10_000), failed: make(chan string, 10_000),
	}
	return s, engine.Observer{
		Claimed: func(runs int, took time.Duration) {
			s.claimed <- runs
			s.took <- took
		},
		Wrote: func(outcomes int, took time.Duration) {
			s.wrote <- outcomes
			s.took <- took
		},
		Heard:  func() { s.heard <- struct{}{} },
		Gap:    func() { s.gaps <- struct{}{} },
		Canary: func(took time.Duration) { s.canary <- took },
		Failed: func(doing string, _ error) { s.failed <- doing },
	}
}

func observerIsTold(w *world) {
	const jobs = 20
	s, o := observe()
	n := w.start(tasks(map[string]registry.Func{"mail": func(context.Context, registry.Job) error { return nil }}), engine.Config{Observer: o})
	for i := range jobs {
		w.schedule(client.Spec{ID: fmt.Sprint("job", i), Task: "mail"})
	}
	for range jobs {
		n.fired()
	}
	for what, counts := range map[string]chan int{"claims": s.claimed, "outcomes": s.wrote} {
		for sum := 0; sum < jobs; {
			if n := await(w, counts, what); n < 1 || sum+n > jobs {
				w.Fatalf("%s of %d after %d, want %d in all", what, n, sum, jobs)
			} else {
				sum += n
			}
		}
	}
	if took := await(w, s.took, "how long a call took"); took < 0 || took > w.patience() {
		w.Errorf("a call took %s", took)
	}
	if took := await(w, s.canary, "the canary"); took < 0 || took > w.patience() {
		w.Errorf("the canary took %s", took)
	}
	await(w, s.heard, "an event")
}

func observerIsToldOfFaults(w *world) {
	s, o := observe()
	l := w.newLink()
	w.startVia(l, tasks(map[string]registry.Func{"mail": func(context.Context, registry.Job) error { return nil }}), engine.Config{Observer: o})
	l.cut()
	await(w, s.failed, "a call that failed")
	l.heal()
	await(w, s.gaps, "a gap")
}

func traceComesAlong(w *world) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	told := make(chan string, 10)
	reg := registry.New()
	reg.Register("mail", registry.Func(func(_ context.Context, job registry.Job) error {
		told <- job.Trace + " " + string(job.Payload)
		return errors.New("not yet")
	}), registry.Options{Retries: registry.Retries{Max: 1, Initial: time.Millisecond}})
	n := w.start(reg, engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", Payload: []byte("hello"), Trace: trace})
	for attempt := range 2 {
		n.fired()
		if got := await(w, told, "the handler"); got != trace+" hello" {
			w.Errorf("attempt %d got %q", attempt+1, got)
		}
	}
	jobs, err := w.jobs.Get(w.Context(), "a")
	if err != nil || len(jobs) != 1 || jobs[0].State != client.Dead || jobs[0].Trace != trace || string(jobs[0].Payload) != "hello" {
		w.Errorf("left %+v, %v", jobs, err)
	}
}
