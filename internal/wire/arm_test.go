package wire_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var armChecks = []check{
	{"arm: a new job gets a fuse, a mapping and a place in the index", armWritesAll},
	{"arm: an id that is pending is refused, replaced or kept", armModes},
	{"arm: replacing moves a job to another task's index", armReplacesTask},
	{"arm: a job that is due has no fuse, and replacing takes the old one away", armDueNow},
	{"arm: a repeated call answers the same", armRepeats},
	{"arm: answers are dropped after a while, also where no node runs", armForgets},
	{"arm: a repeated call does not arm again what ran meanwhile", armRepeatsAfterRun},
	{"arm: of duplicates in one call the mode decides", armDuplicates},
	{"arm: keys of other data are never touched", armForeign},
	{"arm: a bare job is pending", armMeetsBare},
	{"arm: a pending job without a due time has none in the answer", armMeetsImmortal},
	{"arm: a whole batch, with refusals among it", armBatch},
	{"arm: only a job that becomes the earliest wakes the nodes", armWakes},
	{"arm: ids and payloads are any bytes", armAnyBytes},
}

func armWritesAll(w *world) {
	results, now, err := w.s.Arm(w.Context(), wire.Fail, 7, []wire.ArmJob{job("a", "mail", w.span)})
	if err != nil {
		w.Fatal(err)
	}
	due := now.Add(w.span)
	equal(w, "answer", results, []wire.ArmResult{{Outcome: wire.ArmedNew, Due: due}})
	h := w.get("a")
	equal(w, "class", h.Class, "mail of a")
	equal(w, "fuse", h.Fuse, due)
	equal(w, "index", h.Indexed, due)
	equal(w, "runs", len(h.Runs), 0)
	equal(w, "tasks", must(w.s.Tasks(w.Context()))(w), []string{"mail"})
}

func armModes(w *world) {
	w.armNew(job("a", "mail", w.span))
	first := w.get("a").Fuse
	other := job("a", "mail", 50*w.span)
	other.Payload = []byte("other")

	equal(w, "fail", w.arm(wire.Fail, other), []wire.ArmResult{{Outcome: wire.RefusedPending, Due: first}})
	equal(w, "keep", w.arm(wire.Keep, other), []wire.ArmResult{{Outcome: wire.ArmedKept, Due: first}})
	equal(w, "class", w.get("a").Class, "mail of a")

	replaced := w.arm(wire.Replace, other)[0]
	equal(w, "replace", replaced.Outcome, wire.ArmedReplaced)
	h := w.get("a")
	equal(w, "class", h.Class, "mail other")
	equal(w, "due", []time.Time{h.Fuse, h.Indexed}, []time.Time{replaced.Due, replaced.Due})
}

func armReplacesTask(w *world) {
	w.armNew(job("a", "mail", w.span))
	w.arm(wire.Replace, job("a", "bill", w.span))
	equal(w, "mail", w.counts("mail").Pending, 0)
	equal(w, "bill", w.counts("bill").Pending, 1)
}

func armDueNow(w *world) {
	past := job("a", "mail", 0)
	past.When.At = time.Unix(-1000, 0)
	before := w.now().Truncate(time.Millisecond)
	due := w.arm(wire.Fail, past)[0].Due
	if due.Before(before) {
		w.Errorf("due %s, before now", due)
	}
	equal(w, "fuse", w.get("a").Fuse.IsZero(), true)

	w.armNew(job("b", "mail", w.span))
	w.arm(wire.Replace, job("b", "mail", 0))
	equal(w, "fuse", w.get("b").Fuse.IsZero(), true)
	equal(w, "taken", ids(w.take("n", "mail")), []string{"a", "b"})
}

func armRepeats(w *world) {
	w.armNew(job("old", "mail", lease))
	w.set("foreign", "x", 0)
	jobs := []wire.ArmJob{job("now", "mail", 0), job("later", "mail", lease), job("old", "mail", lease), job("foreign", "mail", lease)}
	for i, mode := range []wire.IfExists{wire.Fail, wire.Keep, wire.Replace} {
		once, _, err := w.s.Arm(w.Context(), mode, 1000+int64(i), jobs)
		must(once, err)(w)
		before := w.dump()
		again, _, err := w.s.Arm(w.Context(), mode, 1000+int64(i), jobs)
		equal(w, string(mode), must(again, err)(w), once)
		equal(w, string(mode), changes(before, w.dump()), "")
	}
}

func armRepeatsAfterRun(w *world) {
	jobs := []wire.ArmJob{job("a", "mail", 0), job("b", "mail", w.span)}
	once, _, err := w.s.Arm(w.Context(), wire.Fail, 1000, jobs)
	must(once, err)(w)
	w.pass(w.span + time.Millisecond)
	w.done(w.take("n", "mail")...)
	again, _, err := w.s.Arm(w.Context(), wire.Fail, 1000, jobs)
	equal(w, "answer", must(again, err)(w), once)
	equal(w, "taken", ids(w.take("n", "mail")), []string{})
}

// armForgets runs no node, whose heartbeats would drop old answers.
func armForgets(w *world) {
	if w.real { // two minutes would take as long
		return
	}
	kept := func() int { return len(must(w.rdb.Keys(w.Context(), "keyfuse:answers:*").Result())(w)) }
	arm := func(id string, token int64) {
		_, _, err := w.s.Arm(w.Context(), wire.Fail, token, []wire.ArmJob{job(id, "mail", lease)})
		must(0, err)(w)
	}
	arm("a", 101)
	w.pass(30 * time.Second)
	arm("b", 102)
	w.pass(30 * time.Second)
	equal(w, "kept", kept(), 2)
	arm("c", 200) // the last two half minutes stay
	equal(w, "kept", kept(), 2)
}

func armDuplicates(w *world) {
	for mode, want := range map[wire.IfExists]struct {
		outcome wire.Armed
		class   string
	}{
		wire.Fail:    {wire.RefusedPending, "mail first"},
		wire.Keep:    {wire.ArmedKept, "mail first"},
		wire.Replace: {wire.ArmedReplaced, "bill second"},
	} {
		id := "id of " + string(mode)
		first, second := job(id, "mail", w.span), job(id, "bill", 2*w.span)
		first.Payload, second.Payload = []byte("first"), []byte("second")
		results := w.arm(mode, first, job(id+"'", "mail", w.span), second)
		equal(w, string(mode), []wire.Armed{results[0].Outcome, results[1].Outcome, results[2].Outcome},
			[]wire.Armed{wire.ArmedNew, wire.ArmedNew, want.outcome})
		equal(w, string(mode), w.get(id).Class, want.class)
	}
	equal(w, "bill", w.counts("bill").Pending, 1)
	equal(w, "mail", w.counts("mail").Pending, 5)
}

func armForeign(w *world) {
	ctx := w.Context()
	fill := map[string]func(key string){
		"string": func(key string) { w.set(key, "x", 0) },
		"ttl":    func(key string) { w.set(key, "x", lease) },
		"list":   func(key string) { must(w.rdb.RPush(ctx, key, "x").Result())(w) },
		"hash":   func(key string) { must(w.rdb.HSet(ctx, key, "x", "y").Result())(w) },
		"set":    func(key string) { must(w.rdb.SAdd(ctx, key, "x").Result())(w) },
		"zset":   func(key string) { must(w.rdb.ZAdd(ctx, key, redis.Z{Member: "x"}).Result())(w) },
	}
	var jobs []wire.ArmJob
	for id, fill := range fill {
		fill(id)
		jobs = append(jobs, job(id, "mail", w.span))
		if !strings.HasPrefix(id, "string") && id != "ttl" {
			fill("class:mapped-" + id)
			jobs = append(jobs, job("mapped-"+id, "mail", w.span))
		}
	}
	w.set("class:no task", " mail", 0)
	w.set("class:with list", "mail", 0)
	fill["list"]("with list")
	jobs = append(jobs, job("no task", "mail", w.span), job("with list", "mail", w.span))
	before := w.dump()
	for _, mode := range []wire.IfExists{wire.Fail, wire.Keep, wire.Replace} {
		for i, r := range w.arm(mode, jobs...) {
			equal(w, jobs[i].ID, r, wire.ArmResult{Outcome: wire.RefusedForeign})
		}
	}
	equal(w, "all keys but those of the repeats", withoutRepeats(w.dump()), before)
}

// withoutRepeats is a dump without what arm keeps for a repeated call.
func withoutRepeats(dump string) string {
	var kept strings.Builder
	for line := range strings.Lines(dump) {
		if !strings.HasPrefix(line, `"keyfuse:answer`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func armMeetsBare(w *world) {
	w.set("a", "a", 10*w.span)
	w.set("class:a", "mail bare", 0)
	fuse := w.get("a").Fuse
	equal(w, "fail", w.arm(wire.Fail, job("a", "mail", w.span))[0], wire.ArmResult{Outcome: wire.RefusedPending, Due: fuse})
	equal(w, "replace", w.arm(wire.Replace, job("a", "mail", w.span))[0].Outcome, wire.ArmedReplaced)
	equal(w, "class", w.get("a").Class, "mail of a")
}

func armMeetsImmortal(w *world) {
	w.set("a", "a", 0)
	w.set("class:a", "mail bare", 0)
	equal(w, "answer", w.arm(wire.Keep, job("a", "mail", w.span))[0], wire.ArmResult{Outcome: wire.ArmedKept})
	equal(w, "immortal", w.get("a").Immortal, true)
}

func armBatch(w *world) {
	w.set("job 17", "foreign", 0)
	w.armNew(job("job 18", "mail", w.span))
	jobs := make([]wire.ArmJob, wire.MaxArm)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("job %d", i), fmt.Sprintf("task-%d", i%7), w.span)
	}
	for i, r := range w.arm(wire.Fail, jobs...) {
		want := map[int]wire.Armed{17: wire.RefusedForeign, 18: wire.RefusedPending}[i]
		equal(w, jobs[i].ID, r.Outcome, want)
	}
	var pending int64
	for _, c := range must(w.s.Counts(w.Context()))(w) {
		pending += c.Pending
	}
	equal(w, "pending", pending, wire.MaxArm-1)
}

func armWakes(w *world) {
	sub := w.rdb.Subscribe(w.Context(), w.s.Wake(0))
	defer func() { _ = sub.Close() }()
	must(sub.Receive(w.Context()))(w)

	w.armNew(job("a", "mail", 10*w.span)) // the first
	w.armNew(job("b", "mail", 20*w.span)) // later
	w.armNew(job("c", "bill", 30*w.span)) // the first of its task
	w.armNew(job("d", "mail", 5*w.span))  // earlier
	w.armNew(job("e", "last", 5*w.span))
	var woken []string
	for len(woken) == 0 || woken[len(woken)-1] != "last" {
		woken = append(woken, must(sub.ReceiveMessage(w.Context()))(w).Payload)
	}
	equal(w, "woken", woken, []string{"mail", "bill", "mail", "last"})
}

func armAnyBytes(w *world) {
	for i, id := range []string{"\x00", "a\x00", "\xff\xfe", "a b", "a\r\nb", "{x}", "*?[", strings.Repeat("x", wire.MaxID), "日本"} {
		j := job(id, "mail", 0)
		j.Payload = []byte{0, ' ', '\n', '\r', 0xff, byte(i)}
		w.armNew(j)
		run := w.takeOne("n", "mail")
		equal(w, "id", run.ID, id)
		equal(w, "payload", run.Payload, j.Payload)
		w.done(run)
	}
}
