package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

func newerFormat(w *world) {
	w.set("keyfuse:format", "3", 0)
	e, err := engine.New(w.open(), tasks(nil), engine.Config{Logger: (&record{}).logger()})
	if err != nil {
		w.Fatal(err)
	}
	err = e.Run(w.Context())
	want := `they have 3, this release reads 2: upgrade Keyfuse here, or use another database`
	if err == nil || !strings.Contains(err.Error(), want) {
		w.Errorf("Run: %v, want: %s", err, want)
	}
	if keys := w.rdb.Keys(w.Context(), "*").Val(); !slices.Equal(keys, []string{"keyfuse:format"}) {
		w.Errorf("it left %q", keys)
	}
}

func thirtyDays(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.schedule(client.Spec{ID: "a", Task: "mail", In: 720 * time.Hour})
	n.firedNothing(w.span)
	if got := w.states("a"); !slices.Equal(got, []client.State{client.Pending}) {
		w.Errorf("is %v", got)
	}
	if ttl := w.rdb.TTL(w.Context(), "a").Val(); ttl < 2_591_900*time.Second || ttl > 2_592_000*time.Second {
		w.Errorf("TTL %s", ttl)
	}
	if w.real {
		return
	}
	n.stop() // 30 days of its heartbeats take long, even in a bubble
	<-time.After(720*time.Hour - 2*w.span)
	n = w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	if f := n.fired(); f.Job.ID != "a" || f.Late < 0 || f.Late > 10*time.Millisecond {
		w.Errorf("30 days later: %+v", f)
	}
}

func pastExpireAt(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	await(w, n.sweeps, "the first sweep")
	w.set("raw", "x", 0)
	w.set("class:raw", "mail", 0)
	if err := w.rdb.ExpireAt(w.Context(), "raw", time.Unix(1, 0)).Err(); err != nil {
		w.Fatal(err)
	}
	n.firedNothing(w.span / 10) // Redis told of a deletion, and of no expiry
	if w.real {
		w.gap(n) // the next sweep would be in a minute
	}
	if f := n.fired(); f.Job.ID != "raw" || f.Source != "sweep" {
		w.Errorf("fired %+v", f)
	}
}

// gap breaks the only subscription, after which the node sweeps.
func (w *world) gap(n *node) {
	w.Helper()
	if err := w.rdb.ClientKillByFilter(w.Context(), "TYPE", "pubsub").Err(); err != nil {
		w.Fatal(err)
	}
	await(w, n.sweeps, "the sweep after a gap")
}

func internalKeys(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	for _, key := range []string{"keyfuse:sweep2", "keyfuse:canary:x", "class:a"} {
		w.set(key, " ", w.span/4) // no task, or class:a would be an orphan of a
		w.set("class:"+key, "mail", 0)
	}
	n.firedNothing(w.span)
	if got := w.rdb.Exists(w.Context(), "class:keyfuse:sweep2", "class:keyfuse:canary:x", "class:class:a").Val(); got != 3 {
		w.Errorf("%d of their class keys are left, want all 3", got)
	}
}

func revivedFuse(w *world) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	w.set("raw", "x", w.span)
	w.set("class:raw", "mail", 0)
	w.schedule(client.Spec{ID: "own", Task: "mail", In: w.span})
	for _, id := range []string{"raw", "own"} {
		w.rdb.PExpire(w.Context(), id, 5*w.span)
	}
	n.firedNothing(3 * w.span)
	for range 2 {
		if f := n.fired(); f.Late < 0 || f.Job.Task != "mail" {
			w.Errorf("fired %+v", f)
		}
	}
}

func flushAll(w *world) {
	lease, _ := w.deadline()
	started, ended := make(chan registry.Job, 1), make(chan error, 1)
	n := w.start(tasks(map[string]registry.Func{"mail": stuckOn("a", started, ended)}), engine.Config{Lease: lease})
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	first := await(w, started, "the run")
	if err := w.rdb.FlushAll(w.Context()).Err(); err != nil {
		w.Fatal(err)
	}
	w.schedule(client.Spec{ID: "b", Task: "mail"})
	if cause := await(w, ended, "the handler's end"); !errors.Is(cause, engine.ErrLeaseLost) {
		w.Errorf("the handler's context ended with %v", cause)
	}
	outcomes := make(map[string]engine.Firing)
	for range 2 {
		f := n.fired()
		outcomes[f.Job.ID] = f
	}
	if outcomes["a"].Outcome != engine.Lost {
		w.Errorf("the run that was flushed: %+v", outcomes["a"])
	}
	if b := outcomes["b"]; b.Outcome != engine.Done || nodeOf(b.Job.RunID) == nodeOf(first.RunID) {
		w.Errorf("the job that came after: %+v; the node was %s", b, nodeOf(first.RunID))
	}
	if got := w.rdb.Get(w.Context(), "keyfuse:format").Val(); got != "2" {
		w.Errorf("the format is %q", got)
	}
}

func TestNeverEarlyByAMillisecond(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		for _, offset := range []time.Duration{0, 1, 499 * time.Microsecond, 999_999} {
			<-time.After(offset) // the clock is now between two milliseconds
			for _, in := range []time.Duration{1, time.Microsecond, time.Millisecond, 1500 * time.Millisecond, 1500*time.Millisecond + 1} {
				start := time.Now()
				w.schedule(client.Spec{ID: "a", Task: "mail", In: in})
				f := n.fired()
				ran := f.Job.Due.Add(f.Late)
				if f.Late < 0 || ran.Sub(start.Truncate(time.Millisecond)) < in || f.Late > 2*time.Millisecond {
					w.Errorf("in %s at %s: due %s, late %s", in, start, f.Job.Due, f.Late)
				}
			}
		}
	})
}

func TestARescheduleInTheDueMomentSaysWhoWon(t *testing.T) {
	const span = 10 * time.Second
	for offset := -2; offset <= 2; offset++ {
		for _, how := range []string{"reschedule", "replace", "set"} {
			t.Run(fmt.Sprintf("%s at %+dms", how, offset), func(t *testing.T) {
				inBubble(t, func(w *world) { dueMoment(w, how, span, time.Duration(offset)*time.Millisecond) })
			})
		}
	}
}

// dueMoment changes a job's time so close to it that either may come first.
func dueMoment(w *world, how string, span, offset time.Duration) {
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
	s := w.schedule(client.Spec{ID: "a", Task: "mail", In: span})
	<-time.After(time.Until(s.Due.Add(offset)))
	moved, runs := true, 1
	switch how {
	case "reschedule":
		_, err := w.jobs.Reschedule(w.Context(), "a", span, time.Time{})
		moved = err == nil
		if !moved && !errors.Is(err, client.ErrRunning) && !errors.Is(err, client.ErrNotFound) {
			w.Errorf("rescheduled: %v", err)
		}
	case "replace":
		second := w.schedule(client.Spec{ID: "a", Task: "mail", In: span, IfExists: client.Replace})
		if moved = second.Replaced; !moved {
			runs = 2 // the first one ran, and this is a job of its own
		}
	case "set":
		w.set("a", "x", span)
		moved = w.rdb.Exists(context.Background(), "class:a").Val() == 1
	}
	firsts, seconds := 0, 0
	w.schedule(client.Spec{Task: "marker", In: 2 * span})
	for f := n.fired(); f.Job.Task != "marker"; f = n.fired() {
		switch {
		case f.Late < 0:
			w.Errorf("early: %+v", f)
		case f.Job.Due.Equal(s.Due):
			firsts++
		default:
			seconds++
		}
	}
	if wantFirst := 1; moved && firsts != 0 || !moved && firsts != wantFirst {
		w.Errorf("moved %v, and it ran %d times at its first time", moved, firsts)
	}
	if firsts+seconds != runs {
		w.Errorf("ran %d and %d times, want %d in all", firsts, seconds, runs)
	}
	if offset < -time.Millisecond && !moved || offset > time.Millisecond && moved {
		w.Errorf("moved %v", moved)
	}
}
