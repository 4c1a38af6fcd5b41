package wire_test

import (
	"strings"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var settleChecks = []check{
	{"settle: of a run that succeeded nothing stays", doneLeavesNothing},
	{"settle: a failed run waits for its next attempt, with its error", failRetries},
	{"settle: a dead run keeps payload, attempts and error", failBuries},
	{"settle: a run that is given back has lost no attempt", failReturns},
	{"settle: an older attempt changes nothing", settleIsFenced},
	{"settle: another node's run can't be settled with one's own name", settleNeedsOwnLease},
	{"settle: a repeated call changes nothing and tells no loss", settleRepeats},
	{"settle: a lease that was taken over is told", settleTellsLoss},
	{"settle: some of a group are lost, the others are settled", settleMixed},
	{"settle: any delay and any error", failHostile},
	{"settle: a whole group at once", settleMany},
}

func doneLeavesNothing(w *world) {
	w.armNew(job("a", "mail", 0))
	run := w.takeOne("n", "mail")
	equal(w, "lost", w.done(run), []int{})
	h := w.get("a")
	equal(w, "held", []any{h.HasClass, len(h.Runs)}, []any{false, 0})
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail"})
	equal(w, "records", must(w.rdb.Exists(w.Context(), w.s.OfTask("runs", "mail"), w.s.Of("ids")).Result())(w), 0)
}

func failRetries(w *world) {
	w.armNew(job("a", "mail", 0))
	run := w.takeOne("n", "mail")
	equal(w, "lost", w.fail(wire.Failure{Run: run, Verdict: wire.Retry, Delay: w.span, Error: "no route\nat all"}), []int{})
	held := w.get("a").Runs[0]
	equal(w, "held", []any{held.State, held.Attempt, held.LastError, string(held.Payload), held.RunID},
		[]any{wire.Retrying, 1, "no route\nat all", "of a", run.RunID})
	equal(w, "early", len(w.take("n", "mail")), 0)
	w.until(held.At)
	again := w.takeOne("n", "mail")
	equal(w, "again", []any{again.Attempt, again.LastError, string(again.Payload), again.RunID, again.Due},
		[]any{2, "no route\nat all", "of a", run.RunID, run.Due})
}

func failBuries(w *world) {
	w.armNew(job("a", "mail", 0))
	w.fail(wire.Failure{Run: w.takeOne("n", "mail"), Verdict: wire.Retry, Error: "first"})
	w.fail(wire.Failure{Run: w.takeOne("n", "mail"), Verdict: wire.Bury, Delay: w.span, Error: "last"})
	held := w.get("a").Runs[0]
	equal(w, "held", []any{held.State, held.Attempt, held.LastError, string(held.Payload)}, []any{wire.Dead, 2, "last", "of a"})
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Dead: 1})
	equal(w, "taken", len(w.take("n", "mail")), 0)
}

func failReturns(w *world) {
	w.armNew(job("a", "mail", 0))
	w.fail(wire.Failure{Run: w.takeOne("n", "mail"), Verdict: wire.Retry, Error: "why"})
	w.fail(wire.Failure{Run: w.takeOne("n", "mail"), Verdict: wire.Return, Delay: lease, Error: "the node stops"})
	held := w.get("a").Runs[0]
	equal(w, "held", []any{held.State, held.Attempt, held.LastError}, []any{wire.Retrying, 1, "why"})
	equal(w, "attempt", w.takeOne("m", "mail").Attempt, 2)
}

func settleIsFenced(w *world) {
	w.armNew(job("a", "mail", 0))
	first := w.takeOne("n", "mail")
	w.fail(wire.Failure{Run: first, Verdict: wire.Retry})
	second := w.takeOne("m", "mail")
	before := w.dump()
	w.done(first)
	for _, v := range []wire.Verdict{wire.Retry, wire.Bury, wire.Return} {
		w.fail(wire.Failure{Run: first, Verdict: v, Error: "late"})
	}
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "lost", w.done(second), []int{})
}

func settleNeedsOwnLease(w *world) {
	w.armNew(job("a", "mail", 0))
	run := w.takeOne("n", "mail")
	forged := run
	forged.Lease = strings.Replace(run.Lease, " n ", " m ", 1)
	before := w.dump()
	equal(w, "lost", w.done(forged), []int{0})
	equal(w, "lost", w.fail(wire.Failure{Run: forged, Verdict: wire.Bury}), []int{0})
	equal(w, "changes", changes(before, w.dump()), "")
}

func settleRepeats(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0))
	runs := w.take("n", "mail")
	failure := wire.Failure{Run: runs[1], Verdict: wire.Retry, Error: "e"}
	w.done(runs[0])
	w.fail(failure)
	before := w.dump()
	equal(w, "lost", w.done(runs[0]), []int{})
	equal(w, "lost", w.fail(failure), []int{})
	equal(w, "changes", changes(before, w.dump()), "")
}

func settleTellsLoss(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0))
	runs := w.take("n", "mail")
	w.beat("m")
	for _, gone := range w.kill("n", "m") {
		must(w.s.Reap(w.Context(), gone, "gone"))(w)
	}
	before := w.dump()
	equal(w, "done", w.done(runs...), []int{0, 1})
	equal(w, "fail", w.fail(wire.Failure{Run: runs[0], Verdict: wire.Bury}), []int{0})
	equal(w, "changes", changes(before, w.dump()), "")
}

func settleMixed(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0), job("c", "mail", 0))
	runs := w.take("n", "mail")
	lost := runs[1]
	lost.Lease = "other 1 nobody 5 b"
	equal(w, "lost", w.done(runs[0], lost), []int{1})
	equal(w, "lost", w.fail(wire.Failure{Run: lost, Verdict: wire.Bury}, wire.Failure{Run: runs[2], Verdict: wire.Bury}), []int{0})
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Running: 1, Dead: 1})
}

func failHostile(w *world) {
	w.armNew(job("a", "mail", 0))
	w.fail(wire.Failure{Run: w.takeOne("n", "mail"), Verdict: wire.Retry, Delay: 1<<63 - 1, Error: "1 2\n3 4\x00\xff"})
	held := w.get("a").Runs[0]
	equal(w, "error", held.LastError, "1 2\n3 4\x00\xff")
	if !held.At.After(w.now().Add(100 * 365 * 24 * lease)) {
		w.Errorf("the next attempt is at %s, want it in some 290 years", held.At)
	}
	equal(w, "taken", len(w.take("n", "mail")), 0)
}

func settleMany(w *world) {
	var runs []wire.Run
	for i := range 3 {
		jobs := make([]wire.ArmJob, wire.MaxArm)
		for j := range jobs {
			jobs[j] = job(string(rune('a'+i))+string(rune(j)), "mail", 0)
		}
		w.armNew(jobs...)
		runs = append(runs, w.take("n", "mail")...)
	}
	runs = runs[:wire.MaxSettle]
	failures := make([]wire.Failure, len(runs))
	for i := range runs {
		failures[i] = wire.Failure{Run: runs[i], Verdict: wire.Bury}
	}
	equal(w, "lost", w.done(runs[:100]...), []int{})
	equal(w, "lost", w.fail(failures[100:]...), []int{})
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Running: 100, Dead: wire.MaxSettle - 100})
}
