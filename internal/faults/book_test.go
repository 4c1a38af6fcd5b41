package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// book is what is known: of each job what was asked for and answered, and what
// ran. The load writes a step down before it makes the call, and its answer after.
// All times are in ns by the machine's clock; Redis's own times are turned into
// it, which is exact, as their difference is known.
type book struct {
	mu sync.Mutex

	skew     time.Duration // Redis's clock minus the machine's
	jobs     map[string]*job
	counters map[string]*counter
	open     map[*job]bool // those that something still has to run of
	running  map[attempt]*start
	forgot   []span   // failovers that may have lost what no replica had confirmed
	moved    []span   // when a cluster moved slots
	strays   []string // lines that fit nothing
	refused  []string // answers that no fault explains
}

// attempt is where a handler runs. A process that lost its lease may start a run
// again before it hears that the outcome of the last attempt did not count.
type attempt struct {
	proc *proc
	run  string
	n    int
}

func newBook(skew time.Duration) *book {
	return &book{
		skew: skew, jobs: make(map[string]*job), counters: make(map[string]*counter),
		open: make(map[*job]bool), running: make(map[attempt]*start),
	}
}

// machine is a time of Redis's by the machine's clock.
func (b *book) machine(redisTime time.Time) int64 { return redisTime.UnixNano() - int64(b.skew) }

func (b *book) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// job is an id and what the load did about it, in order.
type job struct {
	id     string
	kind   string
	steps  []step
	starts []*start
}

// step is one call that the load made.
type step struct {
	op      op
	replace bool // arm: whatever is pending there goes
	sent    int64
	acked   int64 // when it was answered
	answer  answer
	floor   int64 // it makes the job due then at the earliest
	due     int64 // what Redis answered that it is; 0 if it did not
	retry   bool  // move: it was a retry that moved, and due stays as it was
}

type op int

const (
	arm  op = iota // a job of its own, with the step's number in its payload
	bare           // the same, by two SETs
	fuse           // SET of a bare job's fuse: another due time
	move           // another due time
	cancel
)

type answer int

const (
	unknown  answer = iota // it may have happened, or not, or not yet
	done                   // it did
	replaced               // arm: it did, and what was pending is gone
	kept                   // arm: an earlier try had armed it already
	running                // move, cancel: it has started
	gone                   // move, cancel: there is nothing
)

// start is a handler that was called.
type start struct {
	id      string
	proc    *proc
	at      int64
	run     string
	attempt int
	reason  string
	count   int64
	due     int64
	serial  int // the step that armed it; -1 if its payload says none

	ended   int64 // when it returned; 0 if it did not
	end     string
	settled string // its outcome in Redis
	told    int64  // when that was said
}

// counter is an id that hits are counted under.
type counter struct {
	id      string
	acked   int64 // hits that were acknowledged
	unknown int64 // calls that got no answer and were not made again
	starts  []*start
}

// begin writes a call down before it is made, and gives its number.
func (b *book) begin(id, kind string, s step) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	if j == nil {
		j = &job{id: id, kind: kind}
		b.jobs[id] = j
	}
	s.sent = time.Now().UnixNano()
	j.steps = append(j.steps, s)
	b.weigh(j)
	return len(j.steps) - 1
}

// answered writes down what came of a call.
func (b *book) answered(id string, n int, a answer, due int64, retry bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	s := &j.steps[n]
	s.answer, s.acked, s.due, s.retry = a, time.Now().UnixNano(), due, retry
	b.weigh(j)
}

// weigh notes whether a job is open.
func (b *book) weigh(j *job) {
	if len(j.missing()) > 0 {
		b.open[j] = true
	} else {
		delete(b.open, j)
	}
}

func (b *book) refuse(what string, err error) {
	b.locked(func() { b.refused = append(b.refused, fmt.Sprintf("%s: %v", what, err)) })
}

func (b *book) counter(id string) *counter {
	c := b.counters[id]
	if c == nil {
		c = &counter{id: id}
		b.counters[id] = c
	}
	return c
}

// hits notes hits that were acknowledged, or calls that may have counted one.
func (b *book) hits(id string, acked, unknown int64) {
	b.locked(func() {
		c := b.counter(id)
		c.acked += acked
		c.unknown += unknown
	})
}

// take notes an event of a daemon. The book must be locked.
func (b *book) take(p *proc, e event) error {
	switch e.kind {
	case started:
		b.start(p, e)
	case ended, settled:
		s := b.running[attempt{p, e.run, e.attempt}]
		if s == nil {
			b.strays = append(b.strays, fmt.Sprintf("%s: run %s %s and had not started", p.name, e.run, e.word))
			return nil
		}
		b.finish(s, e)
	case leaseLost:
		p.lost = append(p.lost, e.at)
	case ready:
		p.isLive = true
	case stopped:
		p.clean = true
	case degraded:
		p.deaf = e.word
	}
	return nil
}

func (b *book) start(p *proc, e event) {
	s := &start{
		id: e.id, proc: p, at: e.at, run: e.run, attempt: e.attempt, reason: e.reason, count: e.count,
		due: b.machine(time.UnixMilli(e.due)), serial: serialOf(e.payload),
	}
	b.running[attempt{p, e.run, e.attempt}] = s
	if j := b.jobs[e.id]; j != nil {
		j.starts = append(j.starts, s)
	} else if c := b.counters[e.id]; c != nil {
		c.starts = append(c.starts, s)
	} else {
		b.strays = append(b.strays, fmt.Sprintf("%s: run %s of %q, which nobody scheduled", p.name, e.run, e.id))
	}
}

func (b *book) finish(s *start, e event) {
	if e.kind == settled {
		s.settled, s.told = e.word, e.at
	} else {
		s.ended, s.end = e.at, e.word
	}
	if s.ended != 0 && s.told != 0 { // a handler that does not stop is given up before it ends
		delete(b.running, attempt{s.proc, s.run, s.attempt})
	}
	if j := b.jobs[s.id]; j != nil && e.kind == ended {
		b.weigh(j)
	}
}

// serialOf is the number of the step that armed a job, from its payload.
func serialOf(payload string) int {
	word, _, _ := strings.Cut(payload, " ")
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}

// orphaned notes that a bare job's class key was set and its fuse was not: it is
// then due when the sweep finds it.
func (b *book) orphaned(id string, n int) {
	b.locked(func() { b.jobs[id].steps[n].floor = 0 })
}

// lag is how far behind its master a replica may be.
const lag = time.Second

// mayForget says that a failover may have undone what was written at a time, as it
// was seen to be later.
func (b *book) mayForget(written, seen int64) bool {
	return slices.ContainsFunc(b.forgot, func(f span) bool {
		return written >= f.from-int64(lag) && (f.to == 0 || written <= f.to) && seen >= f.from
	})
}

// note begins a span among others, and gives what ends it.
func (b *book) note(spans *[]span) (over func()) {
	n := 0
	b.locked(func() {
		n = len(*spans)
		*spans = append(*spans, span{from: time.Now().UnixNano()})
	})
	return func() { b.locked(func() { (*spans)[n].to = time.Now().UnixNano() }) }
}
