package wire_test

import (
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

func windowCancel(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Task: "mail", Within: lease})
	w.define(wire.Threshold{ID: "once", Count: 1, Mode: wire.Once, Within: lease})
	before := w.state()
	w.hitAll(wire.Hit{ID: "c", By: 3, Item: `"x"`})
	equal(w, "cancel", w.cancel("c"), wire.CancelResult{Outcome: wire.ChangedIt})
	equal(w, "again", w.cancel("c"), wire.CancelResult{})
	equal(w, "changes", changes(before, w.state()), "")
	equal(w, "anew", w.hit("c").Count, 1)
	w.del("class:c", "c")
	equal(w, "when it is by hand", w.cancel("c").Outcome, wire.ChangedIt)
	equal(w, "changes", changes(before, w.state()), "")
	w.hit("c")
	w.set("c", "5", 0) // another counter: it is cancelled as well
	equal(w, "set", w.cancel("c").Outcome, wire.ChangedIt)
	equal(w, "changes", changes(before, w.state()), "")

	w.hit("once")
	equal(w, "run", w.fired("n", "mail"), "once threshold 1")
	equal(w, "fired", w.cancel("once").Outcome, wire.ChangedIt)
	equal(w, "changes", changes(before, w.state()), "")
	equal(w, "anew", w.hit("once").Fired, true)
	equal(w, "with the run that waits", w.cancel("once").Outcome, wire.ChangedIt)
	equal(w, "runs", w.fired("n", "mail"), "")
}

func windowFire(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Payload: []byte("p"), Within: lease})
	w.define(wire.Threshold{ID: "d", Count: 9, Within: lease, OnTimeout: wire.TimeoutDrops})
	before := w.state()
	w.hitBy("c", 3)
	must(w.rdb.IncrBy(w.Context(), "c", 2).Result())(w)
	moved := must(w.s.Move(w.Context(), "c", wire.When{}, true))(w)
	run := w.takeOne("n", "mail")
	equal(w, "moved", moved, wire.MoveResult{Outcome: wire.ChangedIt, Due: run.Due, Task: "mail", RunID: run.RunID, Count: 5})
	equal(w, "run", fmt.Sprintf("%s %s %s %d %d %s", run.ID, run.Reason, run.Source, run.Count, run.Attempt, run.Payload), "c manual manual 5 1 p")
	if run.Due.After(w.now()) {
		w.Errorf("due %s, want now", run.Due)
	}
	w.hit("d")
	equal(w, "drop", must(w.s.Move(w.Context(), "d", wire.When{}, true))(w).Outcome, wire.ChangedIt)
	equal(w, "fired", w.fired("n", "mail"), "d manual 1")
	equal(w, "changes", changes(before, w.state()), "")
	equal(w, "remembered", fmt.Sprint(w.activity("c").Fired[0].Reason, w.activity("c").Fired[0].Count), "manual5")
}

func windowFireNot(w *world) {
	w.define(wire.Threshold{ID: "once", Count: 1, Mode: wire.Once, Within: lease})
	w.define(wire.Threshold{ID: "gone", Count: 9, Within: lease})
	w.hitAll(hits("once", "gone")...)
	w.fired("n", "mail")
	w.del("class:gone")
	before := w.dump()
	equal(w, "fired already", must(w.s.Move(w.Context(), "once", wire.When{}, true))(w), wire.MoveResult{Outcome: wire.MetWindow, Due: time.UnixMilli(0)})
	equal(w, "cancelled by hand", must(w.s.Move(w.Context(), "gone", wire.When{}, true))(w).Outcome, wire.MetNothing)
	equal(w, "changes", changes(before, w.dump()), "")
}

func windowMove(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Within: lease})
	w.hit("c")
	before := w.dump()
	for _, in := range []time.Duration{0, w.span, 2 * lease} {
		equal(w, "moved", w.move("c", in).Outcome, wire.MetWindow)
	}
	equal(w, "changes", changes(before, w.dump()), "")
}

func windowAdopt(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9})
	w.define(wire.Threshold{ID: "once", Count: 1, Mode: wire.Once, Task: "bill"})
	old := w.hitAll(hits("c", "once")...)
	before := w.dump()
	for _, by := range []wire.Finder{wire.ByEvent, wire.BySweep} {
		equal(w, string(by), w.adopt(by, 0, "c", "once"), wire.Adopted{Known: 2})
	}
	equal(w, "changes", changes(before, w.dump()), "")
	w.until(old[0].Ends)
	last := w.hitAll(hits("c", "once")...)
	before = w.dump()
	equal(w, "of the window before", w.adopt(wire.ByEvent, 0, "c", "once"), wire.Adopted{Known: 2})
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "fired", w.fired("n", "mail"), "c timeout 1")
	must(w.rdb.Persist(w.Context(), "c").Result())(w)
	equal(w, "immortal", w.adopt(wire.BySweep, 0, "c", "once"), wire.Adopted{Known: 2})
	w.until(last[0].Ends)
	equal(w, "at its end", w.fired("n", "mail"), "c timeout 1")
}

func windowPaused(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2})
	must(w.s.Pause(w.Context(), "mail"))(w)
	old := w.hit("c")
	w.until(old.Ends)
	equal(w, "paused", w.fired("n", "mail"), "")
	must(w.rdb.Incr(w.Context(), "c").Result())(w) // nobody has closed the window
	equal(w, "hits", brief(w.hitAll(hits("c", "c", "c")...)), "1 2! 1")
	equal(w, "paused", w.fired("n", "mail"), "")
	must(w.s.Resume(w.Context(), "mail"))(w)
	equal(w, "resumed", w.fired("n", "mail"), "c threshold 2; c threshold 2")
	equal(w, "open", w.windowOf("c").Count, 1)
}
