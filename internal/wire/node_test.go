package wire_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var nodeChecks = []check{
	{"node: a lease is held from the second beat on", beatHolds},
	{"node: what stopped beating is told, and its runs are free", reapFrees},
	{"node: one that is late itself judges nobody", lateJudgesNobody},
	{"node: one that was given up stays so", goneStaysGone},
	{"node: reaping again frees nothing more", reapRepeats},
	{"node: reaping leaves other nodes' runs alone, also of similar names", reapOnlyOwn},
	{"node: thousands of leases are reaped in rounds", reapMany},
	{"node: what leaves is forgotten", leaveForgets},
	{"node: one sweeps at a time", sweepTurns},
	{"node: the canary burns", canaryBurns},
	{"node: another format is refused", formatRefused},
}

func beatHolds(w *world) {
	pulse := wire.Pulse{Node: "n", First: true, Lease: lease, Info: `{"Host":"h"}`}
	first := must(w.s.Beat(w.Context(), pulse))(w)
	equal(w, "held at first", first.Held, false)
	pulse.First = false
	second := must(w.s.Beat(w.Context(), pulse))(w)
	equal(w, "held", []any{second.Held, second.Gone}, []any{true, []string{}})
	if d := second.Now.Sub(w.now()); d > 0 || d < -time.Second {
		w.Errorf("the clock is off by %s", d)
	}
	nodes := must(w.s.Nodes(w.Context()))(w)
	equal(w, "nodes", []any{len(nodes), nodes[0].Node, nodes[0].Info}, []any{1, "n", `{"Host":"h"}`})
	if nodes[0].Until.Before(second.Now.Add(lease - time.Millisecond)) {
		w.Errorf("the lease ends at %s", nodes[0].Until)
	}
}

func reapFrees(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "bill", 0), job("c", "bill", 0))
	w.take("n", "mail", "bill")
	w.beat("m")
	equal(w, "gone", w.kill("n", "m"), []string{"n"})
	equal(w, "told again", w.beat("m").Gone, []string{"n"})
	equal(w, "freed", must(w.s.Reap(w.Context(), "n", "n is gone"))(w), 3)
	equal(w, "told no more", w.beat("m").Gone, []string{})
	for _, run := range w.take("m", "mail", "bill") {
		equal(w, run.ID, []any{run.Attempt, run.LastError, string(run.Payload)}, []any{2, "n is gone", "of " + run.ID})
	}
	equal(w, "running", w.counts("bill").Running, 2)
}

func lateJudgesNobody(w *world) {
	const short = 500 * time.Millisecond // n's must not be over before m has its own
	for _, node := range []string{"n", "m"} {
		w.beat(node)
		must(w.s.Beat(w.Context(), wire.Pulse{Node: node, Lease: short}))(w)
	}
	w.pass(short + 5*time.Millisecond)
	late := w.beat("n")
	equal(w, "late", []any{late.Held, late.Gone}, []any{true, []string{}})
	// m had this one beat's time to come back, and did not.
	equal(w, "now it judges", w.beat("n").Gone, []string{"m"})
}

func goneStaysGone(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0))
	w.claim(w.wants("n", 1, "mail"))
	w.beat("m")
	w.kill("n", "m")
	for range 2 {
		equal(w, "held", w.beat("n").Held, false)
		if _, err := w.s.Claim(w.Context(), w.wants("n", 1, "mail")); !errors.Is(err, wire.ErrNodeGone) {
			w.Errorf("claiming: %v, want ErrNodeGone", err)
		}
		must(w.s.Reap(w.Context(), "n", "gone"))(w)
	}
	nodes := must(w.s.Nodes(w.Context()))(w)
	equal(w, "nodes", []any{len(nodes), nodes[0].Node}, []any{1, "m"})
}

func reapRepeats(w *world) {
	w.runIn("a", wire.Running)
	w.beat("m")
	w.kill("n", "m")
	equal(w, "freed", must(w.s.Reap(w.Context(), "n", "gone"))(w), 1)
	run := w.takeOne("m", "mail")
	before := w.dump()
	equal(w, "freed again", must(w.s.Reap(w.Context(), "n", "gone"))(w), 0)
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "lost", w.done(run), []int{})
}

func reapOnlyOwn(w *world) {
	w.armNew(job("a", "mail", 0), job("b", "mail", 0), job("c", "mail", 0))
	for _, node := range []string{"n", "nn", "n.1"} {
		w.claim(w.wants(node, 1, "mail"))
	}
	equal(w, "freed", must(w.s.Reap(w.Context(), "n", "gone"))(w), 1)
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Running: 2, Retrying: 1})
}

func reapMany(w *world) {
	const rounds = 8
	kept := 0
	for i := range rounds {
		jobs := make([]wire.ArmJob, wire.MaxArm)
		for j := range jobs {
			jobs[j] = job(fmt.Sprint(i, j), "mail", 0)
		}
		w.armNew(jobs...)
		w.claim(w.wants("n", wire.MaxArm-10, "mail"))
		kept += len(w.take("m", "mail"))
	}
	equal(w, "freed", must(w.s.Reap(w.Context(), "n", "gone"))(w), rounds*(wire.MaxArm-10))
	equal(w, "count", w.counts("mail"), wire.Count{Task: "mail", Running: int64(kept), Retrying: rounds * (wire.MaxArm - 10)})
}

func leaveForgets(w *world) {
	w.beat("n")
	equal(w, "freed", must(w.s.Reap(w.Context(), "n", ""))(w), 0)
	equal(w, "keys", w.dump(), "")
}

func sweepTurns(w *world) {
	step := func(node, cursor string, since time.Time) wire.Swept {
		return must(w.s.Sweep(w.Context(), wire.SweepStep{
			Node: node, Cursor: cursor, Since: since, Wait: w.span, Share: 50, MaxPayload: 100,
		}))(w)
	}
	w.set("class:bare", "mail", 0)
	equal(w, "n", step("n", "", time.Time{}), wire.Swept{Mine: true, Adopted: wire.Adopted{Indexed: 1}})
	began := w.now()
	equal(w, "m, as the last one will do", step("m", "", time.Time{}), wire.Swept{})
	w.pass(w.span / 2)
	equal(w, "m, since something was missed", step("m", "", began.Add(time.Millisecond)), wire.Swept{Mine: true, Adopted: wire.Adopted{Known: 1}})
	equal(w, "n, in the middle of one that m took over", step("n", "7", time.Time{}), wire.Swept{})
	w.pass(w.span + time.Millisecond)
	equal(w, "n, when the wait is over", step("n", "", time.Time{}).Mine, true)
}

func canaryBurns(w *world) {
	sub := w.rdb.Subscribe(w.Context(), w.s.Expired(0))
	defer func() { _ = sub.Close() }()
	must(sub.Receive(w.Context()))(w)
	pulse := wire.Pulse{Node: "n", First: true, Lease: lease, Canary: true}
	must(w.s.Beat(w.Context(), pulse))(w)
	equal(w, "heard", must(sub.ReceiveMessage(w.Context()))(w).Payload, w.s.Canary("n"))
}

func formatRefused(w *world) {
	for range 2 {
		must(0, w.s.CheckFormat(w.Context()))(w)
	}
	for _, other := range []string{"1", "3", "0", "", "2 "} {
		w.set(w.s.Of("format"), other, 0)
		if err := w.s.CheckFormat(w.Context()); !errors.Is(err, wire.ErrFormat) {
			w.Errorf("format %q: %v", other, err)
		}
	}
	equal(w, "untouched", must(w.rdb.Get(w.Context(), w.s.Of("format")).Result())(w), "2 ")
}
