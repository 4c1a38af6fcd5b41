package wire_test

import (
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// TestFullRedis runs scripts on a Redis that has no memory left and evicts
// nothing: each works, or changes nothing and says so.
func TestFullRedis(t *testing.T) {
	for _, c := range fullChecks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onRedis(t, c.test)
		})
	}
}

var fullChecks = []check{
	{"arming is refused and changes nothing", fullArm},
	{"a node goes on: it beats, claims, settles and is reaped", fullNode},
	{"bare jobs are adopted", fullAdopt},
	{"cancel, move and dead letters work", fullChanges},
	{"a job that a full Redis refused can be armed afterwards", fullThenEmpty},
	{"hits and definitions are refused and change nothing", fullHit},
	{"what other clients counted is left for later", fullTouch},
	{"windows end, are cancelled and their definitions removed", fullWindows},
}

func (w *world) memory(limit string) {
	w.Helper()
	must(w.rdb.ConfigSet(w.Context(), "maxmemory", limit).Result())(w)
}

func isFull(w *world, err error) {
	w.Helper()
	if err == nil || !strings.Contains(err.Error(), "OOM") {
		w.Errorf("got %v, want an OOM error", err)
	}
}

func fullArm(w *world) {
	w.armNew(job("old", "mail", lease))
	w.memory("1")
	before := w.dump()
	for _, mode := range []wire.IfExists{wire.Fail, wire.Replace, wire.Keep} {
		for _, in := range []wire.ArmJob{job("new", "mail", w.span), job("new", "mail", 0), job("old", "bill", 2*lease)} {
			w.token++
			results, _, err := w.s.Arm(w.Context(), mode, w.token, []wire.ArmJob{in})
			if in.ID == "old" && mode != wire.Replace { // nothing to write
				equal(w, string(mode), len(must(results, err)(w)), 1)
				continue
			}
			isFull(w, err)
		}
	}
	equal(w, "changes", changes(before, w.dump()), "")
}

func fullNode(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0), job("c", "mail", 0), job("d", "mail", 0))
	w.beat("m")
	w.beat("n")
	w.memory("1")
	equal(w, "held", w.beat("n").Held, true)
	equal(w, "nothing due", len(w.take("n", "bill")), 0)
	runs := w.take("n", "mail")
	equal(w, "taken", len(runs), 4)
	equal(w, "done", w.done(runs[0]), []int{})
	equal(w, "failed", w.fail(
		wire.Failure{Run: runs[1], Verdict: wire.Retry, Error: strings.Repeat("x", 4096)},
		wire.Failure{Run: runs[2], Verdict: wire.Bury, Error: "e"},
	), []int{})
	equal(w, "gone", w.kill("n", "m"), []string{"n"})
	equal(w, "freed", must(w.s.Reap(w.Context(), "n", "gone"))(w), 1)
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Retrying: 2, Dead: 1})
	equal(w, "again", len(w.take("m", "mail")), 2)
}

func fullAdopt(w *world) {
	w.set("class:a", "mail", 0)
	w.set("b", "b", lease)
	w.set("class:b", "bill", 0)
	w.memory("1")
	equal(w, "adopted", w.adopt(wire.BySweep, 0, "a", "b"), wire.Adopted{Indexed: 2})
	equal(w, "taken", ids(w.take("n", "mail", "bill")), []string{"a"})
}

func fullChanges(w *world) {
	w.armNew(job("a", "mail", lease), job("b", "mail", lease))
	dead, retrying := w.runIn("c", wire.Dead), w.runIn("d", wire.Retrying)
	must(w.rdb.Del(w.Context(), "b").Result())(w) // then moving it needs a new fuse
	w.memory("1")
	before := w.dump()
	_, err := w.s.Move(w.Context(), "b", wire.When{In: w.span}, false)
	isFull(w, err)
	equal(w, "changes", changes(before, w.dump()), "")

	equal(w, "moved", w.move("a", 2*lease).Outcome, wire.ChangedIt)
	equal(w, "fired", must(w.s.Move(w.Context(), "a", wire.When{}, true))(w).Outcome, wire.ChangedIt)
	equal(w, "requeued", must(w.s.Requeue(w.Context(), "mail", []string{dead.RunID}))(w), 1)
	equal(w, "cancelled", w.cancel("d"), wire.CancelResult{Outcome: wire.ChangedIt, RunID: retrying.RunID})
	equal(w, "cancelled", w.cancel("b").Outcome, wire.ChangedIt)
	equal(w, "taken", len(w.take("n", "mail")), 2)
}

func fullThenEmpty(w *world) {
	w.memory("1")
	_, _, err := w.s.Arm(w.Context(), wire.Fail, 1, []wire.ArmJob{job("a", "mail", 0)})
	isFull(w, err)
	w.memory("0")
	again, _, err := w.s.Arm(w.Context(), wire.Fail, 1, []wire.ArmJob{job("a", "mail", 0)})
	equal(w, "outcome", must(again, err)(w)[0].Outcome, wire.ArmedNew)
}

func fullHit(w *world) {
	w.define(wire.Threshold{ID: "open", Count: 3, Within: lease})
	w.define(wire.Threshold{ID: "over", Count: 3})
	w.define(wire.Threshold{ID: "drop", Count: 3, OnTimeout: wire.TimeoutDrops})
	w.define(wire.Threshold{ID: "new", Count: 1})
	w.define(wire.Threshold{ID: "once", Count: 1, Mode: wire.Once, Within: lease})
	w.until(w.hitAll(hits("open", "over", "once", "drop")...)[3].Ends)
	w.memory("1")
	before, token := w.dump(), wire.NewToken()
	for _, hit := range []wire.Hit{item("open", "x"), hits("open")[0], {ID: "open", By: 2}, hits("over")[0], hits("drop")[0], hits("new")[0], hits("once")[0]} {
		_, err := w.s.Hit(w.Context(), token, []wire.Hit{hit})
		isFull(w, err)
	}
	_, _, err := w.s.Define(w.Context(), must(wire.Threshold{ID: "x", Task: "mail", Count: 1, Within: lease}.Complete(lease))(w))
	isFull(w, err)
	equal(w, "changes", changes(before, w.dump()), "")
	w.memory("0")
	equal(w, "afterwards", brief(w.hitWith(token, hits("open", "over", "drop", "new", "once")...)), "2 1 1 1! 2")
}

func fullTouch(w *world) {
	for _, id := range []string{"new", "cross", "open", "over"} {
		w.define(wire.Threshold{ID: id, Count: 3})
	}
	w.define(wire.Threshold{ID: "drop", Count: 3, OnTimeout: wire.TimeoutDrops})
	last := w.hitAll(hits("over", "drop")...)
	w.incr("new", 1)
	w.incr("cross", 3)
	w.until(last[1].Ends)
	w.hit("open")
	w.incr("open", 2)
	w.memory("1")
	before := w.dump()
	for _, id := range []string{"new", "cross", "open", "over"} {
		_, err := w.s.Touch(w.Context(), []string{id})
		isFull(w, err)
	}
	equal(w, "changes", changes(before, w.dump()), "")
	w.touch("drop") // writes nothing new
	w.isClosed("drop")
	w.memory("0")
	w.touch("new", "cross", "open", "over")
	equal(w, "afterwards", w.fired("n", "mail"), "cross threshold 3; open threshold 3; over timeout 1")
	equal(w, "afterwards", w.windowOf("new").Count, 1)
}

func fullWindows(w *world) {
	for _, id := range []string{"fire", "cancel", "end", "by hand"} {
		w.define(wire.Threshold{ID: id, Count: 3})
	}
	w.define(wire.Threshold{ID: "drop", Count: 3, OnTimeout: wire.TimeoutDrops})
	w.define(wire.Threshold{ID: "waits", Count: 1})
	w.beat("n")
	w.hit("by hand")
	w.del("class:by hand")
	w.incr("by hand", 1) // since then, for the next window
	last := w.hitAll(item("fire", "x"), hits("cancel")[0], item("end", "y"), hits("drop")[0], hits("waits")[0])
	w.memory("1")
	before := w.dump()
	_, err := w.s.Move(w.Context(), "fire", wire.When{}, true)
	isFull(w, err)
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "cancelled", w.cancel("cancel").Outcome, wire.ChangedIt)
	equal(w, "removed", w.undefine("cancel"), true)
	w.until(last[3].Ends)
	equal(w, "taken", len(w.take("n", "mail")), 3)
	equal(w, "by hand", must(w.rdb.Get(w.Context(), "by hand").Result())(w), "1")
	equal(w, "left", w.dumpOf("keyfuse:windows", "keyfuse:open", "keyfuse:due:mail", "keyfuse:items:end"), "")
}
