package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/keyfuse-io/keyfuse/client"
)

var deadChecks = []check{
	{"dead: requeued by id, by run id, by task, or all", deadBy(requeue)},
	{"dead: deleted by id, by run id, by task, or all", deadBy(remove)},
	{"dead: more than a page, of several tasks", deadMany},
	{"dead: hundreds that are named, by id and by run id", deadNamed},
	{"dead: what others take away meanwhile stops nothing", deadRaced},
	{"dead: a requeued one has all its attempts and its run id", deadAgain},
	{"dead: no other run of the id is touched", deadOnly},
}

type exhume func(w *world, f client.DeadFilter) (int, error)

func requeue(w *world, f client.DeadFilter) (int, error) { return w.c.RequeueDead(w.Context(), f) }
func remove(w *world, f client.DeadFilter) (int, error)  { return w.c.DeleteDead(w.Context(), f) }

func deadBy(change exhume) func(w *world) {
	return func(w *world) {
		mail := w.in(client.Dead, "mail", numbered("mail", 6)...)
		w.in(client.Dead, "bill", numbered("bill", 3)...)
		for _, c := range []struct {
			filter client.DeadFilter
			want   int
		}{
			{client.DeadFilter{IDs: []string{"nothing"}}, 0},
			{client.DeadFilter{IDs: []string{"mail000"}, Task: "bill"}, 0},
			{client.DeadFilter{Task: "unknown"}, 0},
			{client.DeadFilter{IDs: []string{"mail000", "mail000", "nothing"}}, 1},
			{client.DeadFilter{IDs: []string{mail[1].RunID, "mail002"}, Task: "mail"}, 2},
			{client.DeadFilter{IDs: []string{"mail003", "bill000"}}, 2},
			{client.DeadFilter{Task: "mail"}, 2},
			{client.DeadFilter{}, 2},
			{client.DeadFilter{}, 0},
		} {
			equal(w, "changed", must(change(w, c.filter))(w), c.want)
		}
		for _, task := range must(w.c.Stats(w.Context()))(w).Tasks {
			equal(w, "dead "+task.Task, task.Dead, 0)
		}
	}
}

func deadMany(w *world) {
	w.in(client.Dead, "bill", numbered("b", 130)...)
	w.in(client.Dead, "mail", numbered("m", 240)...)
	equal(w, "requeued", must(requeue(w, client.DeadFilter{}))(w), 370)
	equal(w, "claimed", len(w.claim("mail")), 240)
}

// deadRaced empties a task's set once it was counted.
func deadRaced(w *world) {
	w.in(client.Dead, "bill", "b")
	w.in(client.Dead, "mail", "m")
	other := w.client(client.Config{})
	w.rdb.AddHook(&after{"zcard", w.space.Of("b").OfTask("dead", "bill"), func() {
		equal(w, "stolen", must(other.DeleteDead(w.Context(), client.DeadFilter{IDs: []string{"b"}}))(w), 1)
	}})
	equal(w, "requeued", must(requeue(w, client.DeadFilter{}))(w), 1)
}

func deadNamed(w *world) {
	var ids []string
	for page := range 3 {
		for i, run := range w.in(client.Dead, "mail", numbered(fmt.Sprint("mail", page, "-"), 90)...) {
			ids = append(ids, []string{run.ID, run.RunID}[i%2], fmt.Sprint("nothing", page, i))
		}
	}
	equal(w, "deleted", must(remove(w, client.DeadFilter{IDs: append(ids, ids...)}))(w), 3*90)
	equal(w, "left", must(remove(w, client.DeadFilter{}))(w), 0)
}

func deadAgain(w *world) {
	run := w.in(client.Dead, "mail", "a")[0]
	must(requeue(w, client.DeadFilter{}))(w)
	again := w.claim("mail")[0]
	equal(w, "again", []any{again.RunID, again.Attempt, again.LastError, string(again.Payload)}, []any{run.RunID, 1, "why", "of a"})
}

func deadOnly(w *world) {
	w.in(client.Dead, "mail", "a")
	w.in(client.Retrying, "mail", "a")
	w.in(client.Running, "mail", "a")
	equal(w, "deleted", must(remove(w, client.DeadFilter{IDs: []string{"a"}}))(w), 1)
	equal(w, "left", len(must(w.c.Get(w.Context(), "a"))(w)), 2)
}

var errUnreachable = errors.New("unreachable")

func unreachable(context.Context, string, string) (net.Conn, error) { return nil, errUnreachable }
