package wire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// life is the model of what must hold, whatever comes after what:
//
//   - no job that was acknowledged is lost: each is pending, running, retrying,
//     dead or has ended, and what waits runs in the end
//   - none is claimed before it is due, by Redis's clock
//   - none is claimed while it runs, unless its lease ran out
//   - none is claimed once it was cancelled, replaced or done
//   - each run's record has exactly one place, each place a record, and the
//     finder of ids names them all and nothing else
type life struct {
	*rapid.T
	w           *world
	unit, lease time.Duration

	jobs    map[string]*tracked  // all that were ever acknowledged, by payload
	pending map[string]*tracked  // by id
	until   map[string]time.Time // ends of leases, by node
	nodes   []*lifeNode
	armed   []armCall
	known   []wire.Run // what nodes were told to run, also long ago
	named   int
}

// tracked is what is known of one scheduling of a job.
type tracked struct {
	id, task, payload string
	due               time.Time // not to be claimed before
	indexed           bool      // must be in its task's index while it is pending
	state             wire.State
	runID             string
	attempt           int
	node, lease       string
}

// ended is the state of what was done, cancelled, replaced or deleted.
const ended wire.State = "ended"

type lifeNode struct {
	name       string
	beaten     bool
	seq        int64
	unanswered *wire.ClaimRequest // its answer was lost
	taken      []*tracked         // by the last claim
}

type armCall struct {
	token  int64
	mode   wire.IfExists
	job    wire.ArmJob
	answer wire.ArmResult
	at     time.Time
}

func recent(calls []armCall, since time.Time) []armCall {
	return slices.DeleteFunc(calls, func(c armCall) bool { return c.at.Before(since) })
}

func (l *life) ctx() context.Context { return l.w.Context() }

func (l *life) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// get is the value of a call that may not fail.
func get[T any](v T, err error) func(l *life) T {
	return func(l *life) T {
		l.Helper()
		l.must(err)
		return v
	}
}

func (l *life) newNode() *lifeNode {
	l.named++
	return &lifeNode{name: fmt.Sprint("n", l.named)}
}

func (l *life) newPayload() string {
	l.named++
	return fmt.Sprint("payload ", l.named)
}

func (l *life) isPending(job *tracked) {
	l.drop(job.id)
	job.state = wire.Pending
	l.pending[job.id], l.jobs[job.payload] = job, job
}

// drop notes that whatever of an id was pending will never run.
func (l *life) drop(id string) {
	if job := l.pending[id]; job != nil {
		job.state = ended
		delete(l.pending, id)
	}
}

func (l *life) runsOf(id string, state wire.State) []*tracked {
	var runs []*tracked
	for _, job := range l.jobs {
		if job.id == id && job.state == state {
			runs = append(runs, job)
		}
	}
	return runs
}

// meets is what a change to an id must meet.
func (l *life) meets(id string) wire.Changed {
	switch {
	case l.pending[id] != nil || len(l.runsOf(id, wire.Retrying)) > 0:
		return wire.ChangedIt
	case len(l.runsOf(id, wire.Running)) > 0:
		return wire.MetRunning
	case len(l.runsOf(id, wire.Dead)) > 0:
		return wire.MetDead
	}
	return wire.MetNothing
}

// isTaken checks that a run could be claimed, and notes that it was.
func (l *life) isTaken(run wire.Run, node string, now time.Time) *tracked {
	job := l.jobs[string(run.Payload)]
	switch {
	case job == nil:
		l.Fatalf("claimed %q, which nobody scheduled", run.Payload)
	case job.state != wire.Pending && job.state != wire.Retrying:
		l.Fatalf("claimed %q, which is %s", run.Payload, job.state)
	case now.Before(job.due.Truncate(time.Millisecond)):
		l.Fatalf("claimed %q at %s, before it is due at %s", run.Payload, now, job.due)
	case run.ID != job.id || run.Task != job.task || run.Attempt != job.attempt+1 || run.Node() != node:
		l.Fatalf("claimed %+v, want %+v", run, *job)
	case job.state == wire.Retrying && run.RunID != job.runID:
		l.Fatalf("a retry is run %s, was %s", run.RunID, job.runID)
	}
	if job.state == wire.Pending {
		delete(l.pending, job.id)
	}
	job.state, job.runID, job.attempt, job.node, job.lease = wire.Running, run.RunID, run.Attempt, node, run.Lease
	return job
}

// sameRuns checks a repeated claim: it answers what the first one took, as far
// as that is still held.
func (l *life) sameRuns(node *lifeNode, runs []wire.Run) {
	var got, want []string
	for _, run := range runs {
		got = append(got, fmt.Sprintf("%s %d %s %q", run.RunID, run.Attempt, run.Node(), run.ID))
	}
	for _, job := range node.taken {
		if job.state == wire.Running && job.node == node.name {
			want = append(want, fmt.Sprintf("%s %d %s %q", job.runID, job.attempt, job.node, job.id))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.Fatalf("the repeated claim answered %q, want %q", got, want)
	}
}

// beatOf beats for a node, and returns whom it is told to reap.
func (l *life) beatOf(node *lifeNode) []string {
	l.Helper()
	beat, err := l.w.s.Beat(l.ctx(), wire.Pulse{Node: node.name, First: !node.beaten, Lease: l.lease, Info: "{}"})
	l.must(err)
	_, leased := l.until[node.name]
	if beat.Held != leased {
		l.Fatalf("node %s held its lease: %t, want %t", node.name, beat.Held, leased)
	}
	if node.beaten && !beat.Held {
		*node = *l.newNode()
	} else {
		node.beaten = true
		l.until[node.name] = beat.Now.Add(l.lease)
	}
	for _, gone := range beat.Gone {
		if beat.Now.Before(l.until[gone].Truncate(time.Millisecond)) {
			l.Fatalf("node %s is given up at %s, but has a lease until %s", gone, beat.Now, l.until[gone])
		}
		delete(l.until, gone)
	}
	return beat.Gone
}

func (l *life) reap(gone []string) {
	for _, node := range gone {
		now, want := l.w.now().Truncate(time.Millisecond), 0
		for _, job := range l.jobs {
			if job.state == wire.Running && job.node == node {
				job.state, job.due = wire.Retrying, now
				want++
			}
		}
		freed, err := l.w.s.Reap(l.ctx(), node, "gone")
		l.must(err)
		if freed != want {
			l.Fatalf("reaping %s freed %d, want %d", node, freed, want)
		}
	}
}

// agree checks that the indexes, the records and the model are one.
func (l *life) agree(*rapid.T) {
	var want []string
	for _, job := range l.jobs {
		switch job.state {
		case wire.Pending:
			want = append(want, fmt.Sprintf("class %q %s %s", job.id, job.task, job.payload))
		case wire.Running:
			want = append(want, fmt.Sprintf("running:%s %q", job.task, fmt.Sprintf("%s %d %s %s", job.runID, job.attempt, job.node, job.id)))
		case wire.Retrying, wire.Dead:
			want = append(want, fmt.Sprintf("%s:%s %q", job.state, job.task, job.runID), fmt.Sprintf("runs:%s %q", job.task, job.runID),
				fmt.Sprintf("ids %q", job.id+"\x00"+job.task+" "+job.runID))
		}
	}
	got := l.held()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		l.Fatalf("redis holds\n%s\nbut must hold\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// held is all that Redis holds of jobs and runs.
func (l *life) held() []string {
	var got []string
	classes, sets, runs := map[string]*redis.StringCmd{}, map[string]*redis.StringSliceCmd{}, map[string]*redis.StringSliceCmd{}
	_, err := l.w.rdb.Pipelined(l.ctx(), func(p redis.Pipeliner) error {
		for _, id := range []string{"a", "b", "a\x00b"} {
			classes[id] = p.Get(l.ctx(), "class:"+id)
		}
		for _, task := range []string{"t1", "t2"} {
			for _, state := range []string{"runs:", "running:"} {
				runs[state+task] = p.HKeys(l.ctx(), "keyfuse:"+state+task)
			}
			for _, state := range []string{"retrying:", "dead:", "due:"} {
				sets[state+task] = p.ZRange(l.ctx(), "keyfuse:"+state+task, 0, -1)
			}
		}
		sets["ids"] = p.ZRange(l.ctx(), "keyfuse:ids", 0, -1)
		return nil
	})
	if err != redis.Nil {
		l.must(err)
	}
	for id, class := range classes {
		if class.Err() == nil {
			got = append(got, fmt.Sprintf("class %q %s", id, class.Val()))
		}
	}
	for kind, members := range sets {
		if task, due := strings.CutPrefix(kind, "due:"); due {
			l.indexed(task, members.Val())
			continue
		}
		for _, member := range members.Val() {
			got = append(got, fmt.Sprintf("%s %q", kind, member))
		}
	}
	for kind, fields := range runs {
		for _, field := range fields.Val() {
			if lease := strings.SplitN(field, " ", 5); len(lease) == 5 { // but for when it was claimed
				field = strings.Join(slices.Delete(lease, 3, 4), " ")
			}
			got = append(got, fmt.Sprintf("%s %q", kind, field))
		}
	}
	return got
}

// indexed checks that a task's index holds what it must.
func (l *life) indexed(task string, ids []string) {
	for id, job := range l.pending {
		if job.indexed && job.task == task && !slices.Contains(ids, id) {
			l.Fatalf("%q is pending, but not in the index of %s: %q", id, task, ids)
		}
	}
}

// drain lets the daemons die, and one more do all that there is to do. Whatever
// is then left waiting was lost.
func (l *life) drain() {
	last := l.newNode()
	for range 6 {
		l.beatOf(last)
		l.w.pass(l.lease + 5*l.unit)
		l.beatOf(last) // late itself
		l.reap(l.beatOf(last))
		l.adopt(wire.BySweep, "a", "b", "a\x00b")
		l.w.pass(2 * l.unit)
		last.seq++
		claimed, err := l.w.s.Claim(l.ctx(), wire.ClaimRequest{
			Node: last.name, Seq: last.seq, Runs: 100, Bytes: 1 << 20, MaxPayload: 1 << 20,
			Tasks: []wire.Want{{Task: "t1", Runs: 100}, {Task: "t2", Runs: 100}},
		})
		l.must(err)
		for _, run := range claimed.Runs {
			job := l.isTaken(run, last.name, claimed.Now)
			_, err := l.w.s.Done(l.ctx(), run.Task, []wire.Run{run})
			l.must(err)
			job.state = ended
		}
	}
	for _, job := range l.jobs {
		if job.state != ended && job.state != wire.Dead {
			l.Fatalf("lost: %+v", *job)
		}
	}
	l.agree(l.T)
}
