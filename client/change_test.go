package client_test

import (
	"errors"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var changeChecks = []check{
	{"reschedule: gives a waiting job another time", rescheduleMoves},
	{"fire: makes a waiting job due now", fireMoves},
	{"cancel: removes what waits", cancelRemoves},
	{"change: says what it met", changesMeet},
	{"change: ids and times are checked", changesCheck},
	{"get: the pending job first, then its runs", getSeveral},
	{"pause: says whether that changed anything", pauseResume},
	{"stats: tasks and nodes", statsOf},
}

func rescheduleMoves(w *world) {
	w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Hour})
	job := must(w.c.Reschedule(w.Context(), "a", 2*time.Hour, time.Time{}))(w)
	equal(w, "job", job, client.Job{ID: "a", Task: "mail", State: client.Pending, Due: job.Due})
	equal(w, "held", must(w.c.Get(w.Context(), "a"))(w)[0].Due, job.Due)
	at := w.now().Truncate(time.Second).Add(time.Minute)
	equal(w, "at", must(w.c.Reschedule(w.Context(), "a", 0, at))(w).Due, at)

	run := w.in(client.Retrying, "mail", "b")[0]
	job = must(w.c.Reschedule(w.Context(), "b", 0, at))(w)
	equal(w, "retrying", job, client.Job{ID: "b", Task: "mail", State: client.Retrying, Due: at, RunID: run.RunID, At: at})
}

func fireMoves(w *world) {
	w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Hour})
	must(w.c.Fire(w.Context(), "a"))(w)
	equal(w, "reason", w.claim("mail")[0].Reason, "manual")
	w.in(client.Retrying, "bill", "b")
	must(w.c.Fire(w.Context(), "b"))(w)
	equal(w, "attempt", w.claim("bill")[0].Attempt, 2)
}

func cancelRemoves(w *world) {
	w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Hour})
	w.in(client.Retrying, "bill", "b")
	for _, id := range []string{"a", "b"} {
		must(0, w.c.Cancel(w.Context(), id))(w)
		if _, err := w.c.Get(w.Context(), id); !errors.Is(err, client.ErrNotFound) {
			w.Errorf("%q: %v", id, err)
		}
	}
}

// changes are all changes of an id.
func (w *world) changes(id string) map[string]error {
	_, moved := w.c.Reschedule(w.Context(), id, time.Hour, time.Time{})
	_, fired := w.c.Fire(w.Context(), id)
	return map[string]error{"reschedule": moved, "fire": fired, "cancel": w.c.Cancel(w.Context(), id)}
}

func changesMeet(w *world) {
	w.in(client.Running, "mail", "running")
	w.in(client.Dead, "mail", "dead")
	for id, want := range map[string]error{"running": client.ErrRunning, "dead": client.ErrDead, "nothing": client.ErrNotFound} {
		for what, err := range w.changes(id) {
			if !errors.Is(err, want) {
				w.Errorf("%s %s: %v", what, id, err)
			}
		}
	}
	must(w.rdb.Set(w.Context(), w.class("broken"), "?", 0).Result())(w)
	for what, err := range w.changes("broken") {
		if !errors.Is(err, client.ErrNotFound) {
			w.Errorf("%s: %v", what, err)
		}
	}
}

func changesCheck(w *world) {
	for _, id := range []string{"", "class:a", "keyfuse:a"} {
		for what, err := range w.changes(id) {
			if !errors.Is(err, client.ErrInvalid) {
				w.Errorf("%s %q: %v", what, id, err)
			}
		}
	}
	for _, when := range []struct {
		in time.Duration
		at time.Time
	}{{-1, time.Time{}}, {1, time.Unix(1, 0)}, {client.MaxDelay + 1, time.Time{}}} {
		if _, err := w.c.Reschedule(w.Context(), "a", when.in, when.at); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("%+v: %v", when, err)
		}
	}
	for _, task := range []string{"", "a b"} {
		_, paused := w.c.Pause(w.Context(), task)
		_, resumed := w.c.Resume(w.Context(), task)
		if !errors.Is(paused, client.ErrInvalid) || !errors.Is(resumed, client.ErrInvalid) {
			w.Errorf("task %q: %v, %v", task, paused, resumed)
		}
	}
}

func getSeveral(w *world) {
	dead := w.in(client.Dead, "mail", "a")[0]
	running := w.in(client.Running, "mail", "a")[0]
	w.schedule(client.Spec{ID: "a", Task: "bill", In: time.Hour})
	jobs := must(w.c.Get(w.Context(), "a"))(w)
	if len(jobs) != 3 {
		w.Fatalf("got %+v", jobs)
	}
	equal(w, "first", []any{jobs[0].State, jobs[0].Task}, []any{client.Pending, "bill"})
	for _, job := range jobs[1:] {
		switch job.State {
		case client.Running:
			equal(w, "running", []any{job.RunID, wire.EngineOf(job.Node), job.Attempt, string(job.Payload), job.At.IsZero()}, []any{running.RunID, "n", 1, "of a", false})
		default:
			equal(w, "dead", []any{job.State, job.RunID, job.Node, job.LastError}, []any{client.Dead, dead.RunID, "", "why"})
		}
	}
	if _, err := w.c.Get(w.Context(), "b"); !errors.Is(err, client.ErrNotFound) {
		w.Errorf("got %v", err)
	}
}

func pauseResume(w *world) {
	for _, want := range []bool{true, false} {
		equal(w, "pause", must(w.c.Pause(w.Context(), "mail"))(w), want)
	}
	equal(w, "stats", must(w.c.Stats(w.Context()))(w).Tasks, []client.TaskStats{{Task: "mail", Paused: true}})
	for _, want := range []bool{true, false} {
		equal(w, "resume", must(w.c.Resume(w.Context(), "mail"))(w), want)
	}
}

func statsOf(w *world) {
	equal(w, "nothing", must(w.c.Stats(w.Context()))(w), client.Stats{})
	w.in(client.Dead, "mail", "a", "b")
	w.in(client.Running, "mail", "c")
	w.in(client.Pending, "bill", "d")
	stats := must(w.c.Stats(w.Context()))(w)
	equal(w, "tasks", stats.Tasks, []client.TaskStats{{Task: "bill", Pending: 1}, {Task: "mail", Running: 1, Dead: 2}})
	node := stats.Nodes[0]
	equal(w, "node", []any{len(stats.Nodes), node.Name, node.Host, node.PID, node.Tasks, node.Until.After(w.now())},
		[]any{1, "n", "h", 7, []string{"mail"}, true})
}
