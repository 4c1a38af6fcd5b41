package wire_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// TestLife lives through random lives of a few jobs on the embedded Redis. A
// model says after each step what must hold: see life.
func TestLife(t *testing.T) {
	bubble(t, false, func(w *world) {
		rapid.Check(t, func(t *rapid.T) { live(t, w, time.Second, 10*time.Second) })
	})
}

// TestLifeOnRedis does the same on a real Redis, in ms.
func TestLifeOnRedis(t *testing.T) {
	fewer(t)
	onRedis(t, func(w *world) {
		rapid.Check(t, func(t *rapid.T) { live(t, w, 2*time.Millisecond, 40*time.Millisecond) })
	})
}

// fewer lets real time have a fifth of the lives that fake time has.
func fewer(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	all := checks.Value.String()
	var n int
	if _, err := fmt.Sscan(all, &n); err != nil {
		t.Fatal(err)
	}
	if err := checks.Value.Set(fmt.Sprint(max(n/5, 1))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(all) })
}

func live(t *rapid.T, w *world, unit, lease time.Duration) {
	if err := w.rdb.FlushAll(w.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	l := &life{
		T: t, w: w, unit: unit, lease: lease, pending: map[string]*tracked{}, jobs: map[string]*tracked{},
		until: map[string]time.Time{},
	}
	l.nodes = []*lifeNode{l.newNode(), l.newNode()}
	l.beatOf(l.nodes[0]) // the other one starts later
	t.Repeat(map[string]func(*rapid.T){
		"schedule": l.schedule, "repeat schedule": l.repeatSchedule, "reschedule": l.reschedule, "fire": l.fire,
		"cancel": l.cancel, "set by any client": l.rawSet, "set fuse": l.rawFuse, "cancel by any client": l.rawCancel,
		"beat": l.beat, "claim": l.claim, "claim ": l.claim, "settle": l.settle, "settle ": l.settle, "time": l.pass,
		"event": l.hear, "sweep": l.sweep, "restart": l.restart, "dead": l.exhume,
		"": l.agree,
	})
	l.drain()
}

var (
	lifeIDs   = rapid.SampledFrom([]string{"a", "b", "a\x00b"})
	lifeTasks = rapid.SampledFrom([]string{"t1", "t2"})
)

func (l *life) delay(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 4).Draw(t, "delay")) * l.unit
}

// lost says whether a reply gets lost, so that the call is made again.
func lost(t *rapid.T) bool { return rapid.IntRange(0, 3).Draw(t, "reply lost") == 0 }

func (l *life) schedule(t *rapid.T) {
	mode := rapid.SampledFrom([]wire.IfExists{wire.Fail, wire.Replace, wire.Keep}).Draw(t, "if exists")
	id, task, in := lifeIDs.Draw(t, "id"), lifeTasks.Draw(t, "task"), l.delay(t)
	payload := l.newPayload()
	l.w.token++
	call := armCall{l.w.token, mode, wire.ArmJob{ID: id, Task: task, Payload: []byte(payload), When: wire.When{In: in}}, wire.ArmResult{}, time.Time{}}
	fuse := get(l.w.rdb.PExpireTime(l.ctx(), id).Result())(l) / time.Millisecond
	results, now, err := l.w.s.Arm(l.ctx(), mode, call.token, []wire.ArmJob{call.job})
	l.must(err)
	call.answer, call.at = results[0], now
	want, old := wire.ArmedNew, l.pending[id]
	switch {
	case old != nil:
		want = map[wire.IfExists]wire.Armed{wire.Fail: wire.RefusedPending, wire.Keep: wire.ArmedKept, wire.Replace: wire.ArmedReplaced}[mode]
	case int64(fuse) == now.UnixMilli(): // in its last millisecond a fuse may be there or not
		want = call.answer.Outcome
	case int64(fuse) > now.UnixMilli():
		want = wire.RefusedForeign
	}
	if call.answer.Outcome != want {
		t.Fatalf("arming %q: outcome %d, want %d", id, call.answer.Outcome, want)
	}
	if want == wire.ArmedNew || want == wire.ArmedReplaced {
		l.isPending(&tracked{id: id, task: task, payload: payload, due: call.answer.Due, indexed: true})
		l.armed = append(l.armed, call)
	}
}

// repeatSchedule is a connection that makes a call again whose reply was lost,
// after whatever came between.
func (l *life) repeatSchedule(t *rapid.T) {
	l.armed = recent(l.armed, l.w.now().Add(-20*time.Second))
	if len(l.armed) == 0 {
		t.Skip("nothing was scheduled")
	}
	call := rapid.SampledFrom(l.armed).Draw(t, "call")
	results, _, err := l.w.s.Arm(l.ctx(), call.mode, call.token, []wire.ArmJob{call.job})
	l.must(err)
	if results[0] != call.answer {
		t.Fatalf("the repeated call answered %+v, not %+v", results[0], call.answer)
	}
}

func (l *life) rawSet(t *rapid.T) {
	id, task, in, payload := lifeIDs.Draw(t, "id"), lifeTasks.Draw(t, "task"), l.delay(t)+l.unit, l.newPayload()
	due := l.w.now().Add(in)
	l.must(l.w.rdb.Set(l.ctx(), id, id, in).Err())
	l.must(l.w.rdb.Set(l.ctx(), "class:"+id, task+" "+payload, 0).Err())
	l.isPending(&tracked{id: id, task: task, payload: payload, due: due})
}

func (l *life) rawFuse(t *rapid.T) {
	id, in := lifeIDs.Draw(t, "id"), l.delay(t)+l.unit
	due := l.w.now().Add(in)
	l.must(l.w.rdb.Set(l.ctx(), id, id, in).Err())
	if job := l.pending[id]; job != nil {
		job.due = due
	}
}

func (l *life) rawCancel(t *rapid.T) {
	id := lifeIDs.Draw(t, "id")
	keys := []string{"class:" + id}
	if rapid.Bool().Draw(t, "the fuse too") {
		keys = append(keys, id)
	}
	if l.pending[id] == nil {
		t.Skip("not pending")
	}
	l.must(l.w.rdb.Del(l.ctx(), keys...).Err())
	l.drop(id)
}

func (l *life) reschedule(t *rapid.T) {
	id, when := lifeIDs.Draw(t, "id"), wire.When{In: l.delay(t)}
	for more := true; more; more = lost(t) {
		l.move(id, when, false)
	}
}

func (l *life) fire(t *rapid.T) {
	id := lifeIDs.Draw(t, "id")
	for more := true; more; more = lost(t) {
		l.move(id, wire.When{}, true)
	}
}

func (l *life) move(id string, when wire.When, manual bool) {
	moved := get(l.w.s.Move(l.ctx(), id, when, manual))(l)
	if want := l.meets(id); moved.Outcome != want {
		l.Fatalf("moving %q: outcome %d, want %d", id, moved.Outcome, want)
	}
	if moved.Outcome != wire.ChangedIt {
		return
	}
	if job := l.pending[id]; job != nil {
		job.due, job.indexed = moved.Due, true
		return
	}
	for _, job := range l.runsOf(id, wire.Retrying) {
		if job.runID == moved.RunID {
			job.due = moved.Due
			return
		}
	}
	l.Fatalf("moving %q moved run %q, which did not wait", id, moved.RunID)
}

func (l *life) cancel(t *rapid.T) {
	id := lifeIDs.Draw(t, "id")
	for more := true; more; more = lost(t) {
		got, want := get(l.w.s.Cancel(l.ctx(), id))(l)[0].Outcome, l.meets(id)
		if got != want {
			t.Fatalf("cancelling %q: outcome %d, want %d", id, got, want)
		}
		l.drop(id)
		for _, job := range l.runsOf(id, wire.Retrying) {
			job.state = ended
		}
	}
}

func (l *life) beat(t *rapid.T) {
	node := rapid.SampledFrom(l.nodes).Draw(t, "node")
	told := l.beatOf(node)
	if !lost(t) {
		l.reap(told)
	}
}

func (l *life) claim(t *rapid.T) {
	node := rapid.SampledFrom(l.nodes).Draw(t, "node")
	again := node.unanswered != nil
	if !again {
		node.seq++
		node.unanswered = &wire.ClaimRequest{
			Node: node.name, Seq: node.seq, Runs: rapid.IntRange(1, 4).Draw(t, "runs"), Bytes: 1 << 20, MaxPayload: 1 << 20,
			Tasks: []wire.Want{{Task: "t1", Runs: 4}, {Task: "t2", Runs: 4}},
		}
	}
	claimed, err := l.w.s.Claim(l.ctx(), *node.unanswered)
	if _, held := l.until[node.name]; !held {
		if !errors.Is(err, wire.ErrNodeGone) {
			t.Fatalf("a node without a lease claimed: %v", err)
		}
		node.unanswered = nil
		return
	}
	l.must(err)
	if again {
		l.sameRuns(node, claimed.Runs)
	} else {
		node.taken = nil
		for _, run := range claimed.Runs {
			node.taken = append(node.taken, l.isTaken(run, node.name, claimed.Now))
		}
	}
	if !lost(t) {
		node.unanswered = nil
		l.known = append(l.known, claimed.Runs...)
	}
}

func (l *life) settle(t *rapid.T) {
	if len(l.known) == 0 {
		t.Skip("nothing was claimed")
	}
	run := rapid.SampledFrom(l.known).Draw(t, "run")
	verdict := rapid.SampledFrom([]wire.Verdict{"done", wire.Retry, wire.Bury, wire.Return}).Draw(t, "verdict")
	failure := wire.Failure{Run: run, Verdict: verdict, Delay: l.delay(t), Error: "why"}
	job, now := l.jobs[string(run.Payload)], l.w.now().Truncate(time.Millisecond)
	holds := job.state == wire.Running && job.lease == run.Lease
	for more := true; more; more = lost(t) {
		var missed []int
		if verdict == "done" {
			missed = get(l.w.s.Done(l.ctx(), run.Task, []wire.Run{run}))(l)
		} else {
			missed = get(l.w.s.Fail(l.ctx(), run.Task, []wire.Failure{failure}))(l)
		}
		if _, leased := l.until[run.Node()]; (len(missed) > 0) != (!holds && !leased) {
			t.Fatalf("settling %q of %s: lost %v, held %t, leased %t", run.Lease, run.Task, missed, holds, leased)
		}
	}
	if !holds {
		return
	}
	switch verdict {
	case "done":
		job.state = ended
	case wire.Bury:
		job.state = wire.Dead
	case wire.Return:
		job.state, job.attempt, job.due = wire.Retrying, job.attempt-1, now
	case wire.Retry:
		job.state, job.due = wire.Retrying, now.Add(failure.Delay)
	}
}

func (l *life) pass(t *rapid.T) {
	units := rapid.SampledFrom([]int{1, 1, 2, 3, 5, 12}).Draw(t, "units")
	l.w.pass(time.Duration(units) * l.unit)
}

// hear and sweep look at all ids: an event or a sweep may be late by any time.
func (l *life) hear(t *rapid.T) {
	id := lifeIDs.Draw(t, "id")
	for more := true; more; more = lost(t) {
		l.adopt(wire.ByEvent, id)
	}
}

func (l *life) sweep(t *rapid.T) {
	for more := true; more; more = lost(t) {
		l.adopt(wire.BySweep, "a", "b", "a\x00b")
	}
}

func (l *life) adopt(by wire.Finder, ids ...string) {
	found := get(l.w.s.Adopt(l.ctx(), by, l.unit, 1<<20, ids))(l)
	there := 0
	for _, id := range ids {
		if job := l.pending[id]; job != nil {
			there++
			job.indexed = true
		}
	}
	if found.Indexed+found.Known != there || found.Immortal+found.Refused > 0 {
		l.Fatalf("adopting %q: %+v, but %d are pending", ids, found, there)
	}
}

// restart is a daemon that dies without a word and starts under a new name.
func (l *life) restart(t *rapid.T) {
	i := rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node")
	l.nodes[i] = l.newNode()
}

func (l *life) exhume(t *rapid.T) {
	requeue := rapid.Bool().Draw(t, "requeue")
	for _, job := range l.jobs {
		if job.state != wire.Dead {
			continue
		}
		change, state := l.w.s.DeleteDead, ended
		if requeue {
			change, state = l.w.s.Requeue, wire.Retrying
		}
		for i, more := 0, true; more; i, more = i+1, lost(t) {
			if n := get(change(l.ctx(), job.task, []string{job.runID}))(l); n != max(1-i, 0) {
				t.Fatalf("exhuming %s changed %d", job.runID, n)
			}
		}
		job.state, job.attempt = state, 0
		return
	}
	t.Skip("nothing is dead")
}
