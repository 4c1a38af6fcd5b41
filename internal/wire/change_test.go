package wire_test

import (
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var changeChecks = []check{
	{"cancel: a pending job is gone, whoever set it", cancelPending},
	{"cancel: a run that waits for another attempt is gone", cancelRetrying},
	{"cancel: a run under way goes on, a dead one stays", cancelMeets},
	{"cancel: of several runs of an id those that wait go", cancelSeveral},
	{"cancel: class keys and fuses of other data stay", cancelForeign},
	{"change: ids that begin with one another and hold zero bytes stay apart", changeExactID},
	{"move: a pending job has its new time, sooner or later", movePending},
	{"move: a bare job is indexed, and an immortal one burns again", moveBare},
	{"move: a past time and firing by hand make it due now", moveNow},
	{"move: a run that waits for another attempt has it then", moveRetrying},
	{"move: a run under way and a dead one are met", moveMeets},
	{"move: what makes no job is left alone", moveRefused},
	{"dead: requeued with all attempts, or deleted", exhume},
	{"dead: only what is dead", exhumeOnlyDead},
}

func (w *world) cancel(id string) wire.CancelResult {
	w.Helper()
	return must(w.s.Cancel(w.Context(), id))(w)[0]
}

func (w *world) move(id string, in time.Duration) wire.MoveResult {
	w.Helper()
	return must(w.s.Move(w.Context(), id, wire.When{In: in}, false))(w)
}

// runIn makes a run of an id in a state.
func (w *world) runIn(id string, state wire.State) wire.Run {
	w.Helper()
	w.armNew(job(id, "mail", 0))
	run := w.takeOne("n", "mail")
	switch state {
	case wire.Retrying:
		w.fail(wire.Failure{Run: run, Verdict: wire.Retry, Delay: lease, Error: "e"})
	case wire.Dead:
		w.fail(wire.Failure{Run: run, Verdict: wire.Bury, Error: "e"})
	case wire.Running, wire.Pending:
	}
	return run
}

func cancelPending(w *world) {
	w.armNew(job("own", "mail", w.span), job("due", "mail", 0))
	w.set("bare", "bare", w.span)
	w.set("class:bare", "mail", 0)
	w.set("class:orphan", "mail", 0)
	for _, id := range []string{"own", "due", "bare", "orphan"} {
		equal(w, id, w.cancel(id), wire.CancelResult{Outcome: wire.ChangedIt})
		equal(w, id+" again", w.cancel(id), wire.CancelResult{Outcome: wire.MetNothing})
		equal(w, id, must(w.rdb.Exists(w.Context(), id, "class:"+id).Result())(w), 0)
	}
	equal(w, "pending", w.counts("mail").Pending, 0)
	w.pass(w.span)
	equal(w, "taken", len(w.take("n", "mail")), 0)
}

func cancelRetrying(w *world) {
	run := w.runIn("a", wire.Retrying)
	equal(w, "cancel", w.cancel("a"), wire.CancelResult{Outcome: wire.ChangedIt, RunID: run.RunID})
	equal(w, "left", must(w.rdb.Exists(w.Context(), w.s.OfTask("runs", "mail"), w.s.OfTask("retrying", "mail"), w.s.Of("ids")).Result())(w), 0)
}

func cancelMeets(w *world) {
	running, dead := w.runIn("r", wire.Running), w.runIn("d", wire.Dead)
	before := w.dump()
	equal(w, "running", w.cancel("r"), wire.CancelResult{Outcome: wire.MetRunning, RunID: running.RunID})
	equal(w, "dead", w.cancel("d"), wire.CancelResult{Outcome: wire.MetDead, RunID: dead.RunID})
	equal(w, "nothing", w.cancel("x"), wire.CancelResult{Outcome: wire.MetNothing})
	equal(w, "changes", changes(before, w.dump()), "")
}

func cancelSeveral(w *world) {
	w.runIn("a", wire.Dead)
	running := w.runIn("a", wire.Running)
	equal(w, "dead and running", w.cancel("a"), wire.CancelResult{Outcome: wire.MetRunning, RunID: running.RunID})
	w.runIn("a", wire.Retrying)
	w.runIn("a", wire.Retrying)
	equal(w, "states", w.states("a"), "dead retrying retrying running")
	equal(w, "and retrying", w.cancel("a").Outcome, wire.ChangedIt)
	equal(w, "states", w.states("a"), "dead running")
	w.armNew(job("a", "mail", w.span))
	equal(w, "and pending", w.cancel("a"), wire.CancelResult{Outcome: wire.ChangedIt})
	equal(w, "states", w.states("a"), "dead running")
}

func cancelForeign(w *world) {
	w.set("a", "a", 0)
	w.set("class:a", "", 0)
	must(w.rdb.RPush(w.Context(), "class:b", "mail").Result())(w)
	must(w.rdb.RPush(w.Context(), "c", "x").Result())(w)
	before := w.dump()
	equal(w, "a", w.cancel("a").Outcome, wire.MetNothing)
	equal(w, "b", w.cancel("b").Outcome, wire.MetNothing)
	equal(w, "changes", changes(before, w.dump()), "")
	w.set("class:c", "mail", 0)
	equal(w, "c", w.cancel("c").Outcome, wire.ChangedIt)
	equal(w, "changes", changes(before, w.dump()), "")
}

func changeExactID(w *world) {
	similar := []string{"a", "a\x00", "a\x00mail x", "a\x00mail n.1.0\x00", "a\x01", "ab", "\x00a", "a\x00a"}
	for _, id := range similar {
		w.runIn(id, wire.Retrying)
	}
	for i, id := range similar {
		equal(w, id, w.states(id), "retrying")
		equal(w, id, w.move(id, w.span).Outcome, wire.ChangedIt)
		equal(w, id, w.cancel(id).Outcome, wire.ChangedIt)
		equal(w, id, w.states(id), "")
		equal(w, "left", w.counts("mail").Retrying, int64(len(similar)-i-1))
	}
}

func movePending(w *world) {
	w.armNew(job("a", "mail", w.span))
	for _, in := range []time.Duration{100 * w.span, 50 * w.span, w.span} {
		moved := w.move("a", in)
		h := w.get("a")
		equal(w, "move", moved, wire.MoveResult{Outcome: wire.ChangedIt, Due: h.Fuse, Task: "mail"})
		equal(w, "index", h.Indexed, h.Fuse)
		if wait := h.Fuse.Sub(w.now()); wait > in || wait < in/2 {
			w.Errorf("due in %s, want %s", wait, in)
		}
	}
	w.until(w.get("a").Fuse)
	equal(w, "taken", ids(w.take("n", "mail")), []string{"a"})
}

func moveBare(w *world) {
	w.set("a", "mine", w.span)
	w.set("class:a", "mail", 0)
	w.set("class:orphan", "mail", 0)
	w.set("i", "mine", 0)
	w.set("class:i", "mail", 0)
	for _, id := range []string{"a", "orphan", "i"} {
		due := w.move(id, 5*w.span).Due
		h := w.get(id)
		equal(w, id, []time.Time{h.Fuse, h.Indexed}, []time.Time{due, due})
	}
	equal(w, "fuse", must(w.rdb.Get(w.Context(), "a").Result())(w), "mine")
}

func moveNow(w *world) {
	w.armNew(job("past", "mail", w.span), job("fired", "mail", w.span))
	must(w.s.Move(w.Context(), "past", wire.When{At: time.Unix(1, 0)}, false))(w)
	must(w.s.Move(w.Context(), "fired", wire.When{}, true))(w)
	equal(w, "fuses", must(w.rdb.Exists(w.Context(), "past", "fired").Result())(w), 0)
	reasons := map[string]string{}
	for _, run := range w.take("n", "mail") {
		reasons[run.ID] = run.Reason
	}
	equal(w, "reasons", reasons, map[string]string{"past": "timer", "fired": "manual"})
}

func moveRetrying(w *world) {
	run := w.runIn("a", wire.Retrying)
	moved := w.move("a", w.span)
	equal(w, "move", moved, wire.MoveResult{Outcome: wire.ChangedIt, Due: w.get("a").Runs[0].At, Task: "mail", RunID: run.RunID})
	equal(w, "early", len(w.take("n", "mail")), 0)
	w.until(moved.Due)
	equal(w, "attempt", w.takeOne("n", "mail").Attempt, 2)
}

func moveMeets(w *world) {
	running, dead := w.runIn("r", wire.Running), w.runIn("d", wire.Dead)
	before := w.dump()
	for id, want := range map[string]wire.MoveResult{
		"r": {Outcome: wire.MetRunning, Task: "mail", RunID: running.RunID},
		"d": {Outcome: wire.MetDead, Task: "mail", RunID: dead.RunID},
		"x": {Outcome: wire.MetNothing},
	} {
		got := w.move(id, w.span)
		got.Due = want.Due
		equal(w, id, got, want)
	}
	equal(w, "changes", changes(before, w.dump()), "")
}

func moveRefused(w *world) {
	w.set("class:empty", "", 0)
	must(w.rdb.RPush(w.Context(), "class:list", "mail").Result())(w)
	w.set("class:foreign", "mail", 0)
	must(w.rdb.RPush(w.Context(), "foreign", "x").Result())(w)
	before := w.dump()
	for _, id := range []string{"empty", "list", "foreign"} {
		equal(w, id, w.move(id, w.span).Outcome, wire.MetNoJob)
	}
	equal(w, "changes", changes(before, w.dump()), "")
}

func exhume(w *world) {
	a, b := w.runIn("a", wire.Dead), w.runIn("b", wire.Dead)
	equal(w, "requeued", must(w.s.Requeue(w.Context(), "mail", []string{a.RunID, a.RunID, "x"}))(w), 1)
	equal(w, "deleted", must(w.s.DeleteDead(w.Context(), "mail", []string{b.RunID, b.RunID, "x"}))(w), 1)
	equal(w, "of b", w.states("b"), "")
	again := w.takeOne("n", "mail")
	equal(w, "again", []any{again.RunID, again.Attempt, again.LastError, string(again.Payload)}, []any{a.RunID, 1, "e", "of a"})
	w.done(again)
	equal(w, "left", must(w.rdb.Exists(w.Context(), w.s.OfTask("runs", "mail"), w.s.Of("ids")).Result())(w), 0)
}

func exhumeOnlyDead(w *world) {
	running, retrying := w.runIn("a", wire.Running), w.runIn("b", wire.Retrying)
	dead := w.runIn("c", wire.Dead)
	before := w.dump()
	runIDs := []string{running.RunID, retrying.RunID}
	equal(w, "requeued", must(w.s.Requeue(w.Context(), "mail", runIDs))(w), 0)
	equal(w, "deleted", must(w.s.DeleteDead(w.Context(), "mail", runIDs))(w), 0)
	equal(w, "of another task", must(w.s.DeleteDead(w.Context(), "bill", []string{dead.RunID}))(w), 0)
	equal(w, "changes", changes(before, w.dump()), "")
}
