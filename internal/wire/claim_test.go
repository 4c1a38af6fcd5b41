package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var claimChecks = []check{
	{"claim: nothing before its due time, and then all of a run", claimOnTime},
	{"claim: earliest first, over all that a task has", claimEarliestFirst},
	{"claim: a flood of one task leaves the others their share", claimFairly},
	{"claim: not more than asked for, of all and of each task", claimBudget},
	{"claim: stops after so many bytes, but takes one run at least", claimBytes},
	{"claim: nothing of a paused task", claimPaused},
	{"claim: a fuse that burns again moves the job to its new time", claimPostponed},
	{"claim: an immortal fuse holds its job", claimImmortal},
	{"claim: a class key that names another task by now moves the job there", claimOtherTask},
	{"claim: a job whose class key is gone was cancelled", claimCancelled},
	{"claim: what can't be run is left where it is, and told", claimRefused},
	{"claim: the same call again answers the same runs", claimRepeats},
	{"claim: the same call again answers only what is still held", claimRepeatsHeld},
	{"claim: a call that comes late takes nothing", claimLate},
	{"claim: a call that took nothing takes nothing when it comes again", claimLateEmpty},
	{"claim: a node without a lease takes nothing", claimNeedsLease},
	{"claim: says when the next run is due", claimNext},
	{"claim: an id is free again while its run goes on", claimFreesID},
	{"claim: says how a job was found", claimSource},
	{"claim: many more than one call takes, each once", claimMany},
}

func claimOnTime(w *world) {
	w.armNew(job("a", "mail", w.span))
	due := w.get("a").Fuse
	equal(w, "early", w.take("n", "mail"), nil)
	w.until(due) // in its last millisecond the fuse may still be there
	c := w.claim(w.wants("n", 10, "mail"))
	if len(c.Runs) != 1 || c.Now.Before(due) {
		w.Fatalf("claimed %v at %s, due %s", ids(c.Runs), c.Now, due)
	}
	run := c.Runs[0]
	equal(w, "run", run, wire.Run{
		Task: "mail", ID: "a", RunID: "n.2.0", Attempt: 1, Due: due, Reason: "timer", Source: "index",
		Payload: []byte("of a"), Lease: fmt.Sprintf("n.2.0 1 n %d a", c.Now.UnixMilli()), State: wire.Running,
	})
	equal(w, "node", run.Node(), "n")
	h := w.get("a")
	equal(w, "left", []bool{h.HasClass, h.Fuse.IsZero(), h.Indexed.IsZero()}, []bool{false, true, true})
	equal(w, "states", w.states("a"), "running")
}

func claimEarliestFirst(w *world) {
	for _, n := range []int{3, 1, 2} {
		w.armNew(job("in "+fmt.Sprint(n), "bill", time.Duration(n)*w.span))
	}
	w.pass(4 * w.span)
	equal(w, "taken", ids(w.take("n", "bill")), []string{"in 1", "in 2", "in 3"})
}

func claimFairly(w *world) {
	for i := range 30 {
		w.armNew(job(fmt.Sprint("flood ", i), "flood", 0))
	}
	w.armNew(job("x", "mail", 0), job("y", "mail", 0))
	req := w.wants("n", 10, "flood", "mail")
	runs := w.claim(req).Runs
	equal(w, "taken", []int{len(runs), len(of("flood", runs)), len(of("mail", runs))}, []int{10, 8, 2})
}

func of(task string, runs []wire.Run) []wire.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r wire.Run) bool { return r.Task != task })
}

func claimBudget(w *world) {
	for i := range 10 {
		w.armNew(job(fmt.Sprint("m", i), "mail", 0), job(fmt.Sprint("b", i), "bill", 0))
	}
	req := w.wants("n", 7, "mail", "bill")
	req.Tasks[1].Runs = 2
	runs := w.claim(req).Runs
	equal(w, "taken", []int{len(of("mail", runs)), len(of("bill", runs))}, []int{5, 2})
	req = w.wants("n", 0, "mail")
	equal(w, "taken of none", len(w.claim(req).Runs), 0)
	equal(w, "pending", []int64{w.counts("mail").Pending, w.counts("bill").Pending}, []int64{5, 8})
}

func claimBytes(w *world) {
	jobs := make([]wire.ArmJob, 100)
	for i := range jobs {
		jobs[i] = job(fmt.Sprint(i), "mail", 0)
		jobs[i].Payload = bytes.Repeat([]byte{'x'}, 1000)
	}
	w.armNew(jobs...)
	req := w.wants("n", 100, "mail")
	req.Bytes = 1
	n := len(w.claim(req).Runs)
	if n < 1 || n > 32 {
		w.Errorf("took %d, want at least one and one chunk at most", n)
	}
	equal(w, "the rest", len(w.take("n", "mail")), 100-n)
}

func claimPaused(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "bill", 0))
	run := w.takeOne("n", "bill")
	w.fail(wire.Failure{Run: run, Verdict: wire.Retry})
	for _, want := range []bool{true, false} {
		equal(w, "pause", must(w.s.Pause(w.Context(), "mail"))(w), want)
	}
	must(w.s.Pause(w.Context(), "bill"))(w)
	c := w.claim(w.wants("n", 10, "mail", "bill"))
	equal(w, "while paused", []any{ids(c.Runs), c.Next.IsZero()}, []any{[]string{}, true})
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Pending: 1, Paused: true})
	for _, want := range []bool{true, false} {
		equal(w, "resume", must(w.s.Resume(w.Context(), "mail"))(w), want)
	}
	equal(w, "resumed", ids(w.take("n", "mail", "bill")), []string{"a"})
}

func claimPostponed(w *world) {
	w.armNew(job("a", "mail", w.span), job("b", "mail", 2*w.span))
	w.until(w.get("a").Fuse.Add(-time.Millisecond))
	w.set("a", "again", 100*w.span)
	w.pass(2 * w.span)
	equal(w, "taken", ids(w.take("n", "mail")), []string{"b"})
	h := w.get("a")
	equal(w, "index", h.Indexed, h.Fuse)
	equal(w, "class", h.Class, "mail of a")
}

func claimImmortal(w *world) {
	w.armNew(job("a", "mail", w.span), job("b", "mail", w.span))
	w.set("a", "again", 0)
	w.pass(2 * w.span)
	equal(w, "taken", ids(w.take("n", "mail")), []string{"b"})
	equal(w, "held", w.get("a").Immortal, true)
	must(w.rdb.PExpire(w.Context(), "a", w.span).Result())(w)
	equal(w, "adopted", must(w.s.Adopt(w.Context(), wire.BySweep, 0, 1<<20, []string{"a"}))(w), wire.Adopted{Indexed: 1})
	w.pass(2 * w.span)
	equal(w, "taken", ids(w.take("n", "mail")), []string{"a"})
}

func claimOtherTask(w *world) {
	w.armNew(job("a", "mail", 0))
	w.set("class:a", "bill new payload", 0)
	equal(w, "mail", ids(w.take("n", "mail")), []string{})
	run := w.takeOne("n", "bill")
	equal(w, "payload", string(run.Payload), "new payload")
}

func claimCancelled(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0))
	w.del("class:a")
	equal(w, "taken", ids(w.take("n", "mail")), []string{"b"})
	equal(w, "pending", w.counts("mail").Pending, 0)
}

func claimRefused(w *world) {
	big := job("big", "mail", 0)
	big.Payload = bytes.Repeat([]byte{'x'}, 100)
	w.armNew(big, job("list", "mail", 0), job("none", "mail", 0), job("ok", "mail", 0))
	w.del("class:list")
	must(w.rdb.RPush(w.Context(), "class:list", "x").Result())(w)
	w.set("class:none", "?", 0)
	req := w.wants("n", 10, "mail")
	req.MaxPayload = 99
	c := w.claim(req)
	equal(w, "taken", ids(c.Runs), []string{"ok"})
	equal(w, "refused", c.Refused, 3)
	if !slices.Contains([]string{"big", "list", "none"}, c.Example) {
		w.Errorf("example %q", c.Example)
	}
	equal(w, "there still", must(w.rdb.Exists(w.Context(), "class:big", "class:list", "class:none").Result())(w), 3)
	equal(w, "index", w.counts("mail").Pending, 0)
	exact := w.wants("n", 10, "mail")
	exact.MaxPayload = 100
	must(w.s.Adopt(w.Context(), wire.BySweep, 0, 100, []string{"big"}))(w)
	equal(w, "at the limit", ids(w.claim(exact).Runs), []string{"big"})
}

func claimRepeats(w *world) {
	for i := range 5 {
		w.armNew(job(fmt.Sprint("m", i), "mail", 0), job(fmt.Sprint("b", i), "bill", 0), job(fmt.Sprint("r", i), "mail", 0))
	}
	for _, run := range w.claim(w.wants("n", 4, "mail", "bill")).Runs {
		w.fail(wire.Failure{Run: run, Verdict: wire.Retry, Error: "e"})
	}
	req := w.wants("n", 11, "mail", "bill")
	once := w.claim(req)
	before := w.dump()
	again := w.claim(req)
	equal(w, "number", len(once.Runs), 11)
	equal(w, "changes", changes(before, w.dump()), "")
	byID := func(a, b wire.Run) int { return bytes.Compare([]byte(a.RunID), []byte(b.RunID)) }
	slices.SortFunc(once.Runs, byID)
	slices.SortFunc(again.Runs, byID)
	equal(w, "runs", again.Runs, once.Runs)
	equal(w, "more is to be had", again.Next.After(again.Now), false)
	equal(w, "the rest", len(w.take("n", "mail", "bill")), 4)
}

func claimRepeatsHeld(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0), job("c", "mail", 0))
	req := w.wants("n", 10, "mail")
	runs := w.claim(req).Runs
	w.done(runs[0])
	w.fail(wire.Failure{Run: runs[1], Verdict: wire.Bury})
	equal(w, "again", ids(w.claim(req).Runs), []string{runs[2].ID})
}

func claimLate(w *world) {
	w.armNew(job("a", "mail", 0))
	late, next := w.wants("n", 10, "mail"), w.wants("n", 10, "mail")
	equal(w, "taken", len(w.claim(next).Runs), 1)
	w.armNew(job("b", "mail", 0))
	equal(w, "late", len(w.claim(late).Runs), 0)
	equal(w, "again", ids(w.claim(next).Runs), []string{"a"})
	equal(w, "pending", w.counts("mail").Pending, 1)
}

func claimLateEmpty(w *world) {
	empty := w.wants("n", 10, "mail")
	equal(w, "taken", len(w.claim(empty).Runs), 0)
	w.armNew(job("a", "mail", 0))
	equal(w, "the same call, delayed on its way", len(w.claim(empty).Runs), 0)
	equal(w, "the next call", ids(w.take("n", "mail")), []string{"a"})
}

func claimNeedsLease(w *world) {
	w.armNew(job("a", "mail", 0))
	req := w.wants("n", 10, "mail")
	req.Node = "nobody"
	if _, err := w.s.Claim(w.Context(), req); !errors.Is(err, wire.ErrNodeGone) {
		w.Errorf("got %v, want ErrNodeGone", err)
	}
	equal(w, "pending", w.counts("mail").Pending, 1)
}

func claimNext(w *world) {
	equal(w, "nothing known", w.claim(w.wants("n", 10, "mail")).Next.IsZero(), true)
	w.armNew(job("a", "mail", 20*w.span), job("b", "bill", 10*w.span), job("c", "other", w.span))
	equal(w, "next", w.claim(w.wants("n", 10, "mail", "bill")).Next, w.get("b").Fuse)
	w.armNew(job("d", "mail", 0))
	run := w.takeOne("n", "mail")
	w.fail(wire.Failure{Run: run, Verdict: wire.Retry, Delay: 5 * w.span})
	c := w.claim(w.wants("n", 10, "mail", "bill"))
	equal(w, "next attempt", c.Next, w.get("d").Runs[0].At)
}

func claimFreesID(w *world) {
	w.armNew(job("a", "mail", 0))
	first := w.takeOne("n", "mail")
	w.armNew(job("a", "mail", 0))
	second := w.takeOne("n", "mail")
	equal(w, "states", w.states("a"), "running running")
	w.done(first)
	equal(w, "left", w.get("a").Runs[0].RunID, second.RunID)
}

func claimSource(w *world) {
	w.armNew(job("own", "mail", 0), job("fired", "mail", w.span))
	w.set("class:heard", "mail", 0)
	w.set("class:swept", "mail", 0)
	must(w.s.Adopt(w.Context(), wire.ByEvent, 0, 1<<20, []string{"heard"}))(w)
	must(w.s.Adopt(w.Context(), wire.BySweep, 0, 1<<20, []string{"swept"}))(w)
	must(w.s.Move(w.Context(), "fired", wire.When{}, true))(w)
	got := map[string]string{}
	for _, run := range w.take("n", "mail") {
		got[run.ID] = run.Source + " " + run.Reason
	}
	equal(w, "sources", got, map[string]string{
		"own": "index timer", "heard": "event timer", "swept": "sweep timer", "fired": "manual manual",
	})
}

func claimMany(w *world) {
	const n = 700
	for from := 0; from < n; from += wire.MaxArm {
		var jobs []wire.ArmJob
		for i := from; i < min(from+wire.MaxArm, n); i++ {
			jobs = append(jobs, job(fmt.Sprint(i), "mail", 0))
		}
		w.armNew(jobs...)
	}
	seen := map[string]bool{}
	for {
		runs := w.claim(w.wants("n", 250, "mail")).Runs
		if len(runs) == 0 {
			break
		}
		for _, run := range runs {
			seen[run.ID+run.RunID] = true
		}
		equal(w, "lost", w.done(runs...), []int{})
	}
	equal(w, "runs", len(seen), n)
}
