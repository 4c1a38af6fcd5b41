package client

import (
	"context"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// gather lets concurrent calls of Schedule share calls of Redis: while some are on
// their way, the jobs of further callers gather, and go together as soon as one is
// answered. Who is alone never waits for another.
type gather struct {
	confirm wire.Confirm

	mu    sync.Mutex
	lines map[lineKey]*line
}

type lineKey struct {
	store *wire.Store
	mode  IfExists
}

// line is where jobs gather that can go in one call.
type line struct {
	lineKey
	flying chan struct{} // holds a value for each call that is on its way
	open   *shared       // that further jobs may join; nil if there is none
}

// maxFlying is how many calls of a line are on their way at a time: one would do,
// but a connection that hangs must not stop the others.
const maxFlying = 2

// shared is a call for the jobs of several callers. One of them leads it. If that
// one's context ends meanwhile, another makes the same call again, under the same
// token, by which Redis knows what the first one did.
type shared struct {
	token   int64
	callers []*caller
	bytes   int
	jobs    []wire.ArmJob // nil until it is sent; the same whenever it is made again
	turn    chan struct{} // holds the leader's value
	done    chan struct{} // closed when the rest is there

	results   []wire.ArmResult
	confirmed wire.Confirmed
	err       error
}

// caller waits for the result at its place among those of the jobs.
type caller struct {
	job   wire.ArmJob
	place int
	gone  bool // before the job was sent: then it never is
}

func newGather(confirm wire.Confirm) *gather {
	return &gather{confirm: confirm, lines: make(map[lineKey]*line)}
}

// arm arms one job, together with those of other callers. A job whose caller's
// context ends before it is sent is not armed; if it ends later, it may be, as with
// any call.
func (g *gather) arm(ctx context.Context, store *wire.Store, mode IfExists, job wire.ArmJob) (wire.ArmResult, wire.Confirmed, error) {
	if err := ctx.Err(); err != nil {
		return wire.ArmResult{}, wire.Confirmed{}, err
	}
	l, call, self := g.join(lineKey{store, mode}, job)
	for {
		select {
		case <-call.done:
			return call.answer(self)
		case <-ctx.Done():
			if call.isDone() {
				return call.answer(self)
			}
			g.leave(l, call, self)
			return wire.ArmResult{}, wire.Confirmed{}, ctx.Err()
		case call.turn <- struct{}{}:
			g.lead(ctx, l, call)
		}
	}
}

func (c *shared) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *shared) answer(self *caller) (wire.ArmResult, wire.Confirmed, error) {
	if c.err != nil {
		return wire.ArmResult{}, wire.Confirmed{}, c.err
	}
	return c.results[self.place], c.confirmed, nil
}

func (g *gather) join(key lineKey, job wire.ArmJob) (*line, *shared, *caller) {
	job.Payload = slices.Clone(job.Payload) // another caller may send it when its own has left
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[key]
	if l == nil {
		l = &line{lineKey: key, flying: make(chan struct{}, maxFlying)}
		g.lines[key] = l
	}
	if l.open == nil || len(l.open.callers) == wire.MaxArm || l.open.bytes+len(job.Payload) > maxChunkBytes {
		l.open = &shared{token: mathrand.Int64(), turn: make(chan struct{}, 1), done: make(chan struct{})}
	}
	self := &caller{job: job}
	l.open.callers = append(l.open.callers, self)
	l.open.bytes += len(job.Payload)
	return l, l.open, self
}

// leave is for a caller whose context has ended. Nobody may join its call any more,
// for if all have left it is never made.
func (g *gather) leave(l *line, call *shared, self *caller) {
	g.mu.Lock()
	defer g.mu.Unlock()
	self.gone = true
	l.close(call)
}

// close keeps further jobs from joining a call.
func (l *line) close(call *shared) {
	if l.open == call {
		l.open = nil
	}
}

// lead makes a call, unless that was done. The caller has its turn.
func (g *gather) lead(ctx context.Context, l *line, call *shared) {
	defer func() { <-call.turn }()
	if call.isDone() {
		return
	}
	select {
	case <-ctx.Done():
		return
	case l.flying <- struct{}{}:
		defer func() { <-l.flying }()
	}
	results, _, confirmed, err := l.store.ArmConfirmed(ctx, g.confirm, l.mode, call.token, g.freeze(l, call))
	if err != nil && isOver(ctx) {
		return // it may be the leader's trouble alone
	}
	call.results, call.confirmed, call.err = results, confirmed, err
	close(call.done)
}

// freeze is what a call sends: the jobs of those who have not left before it was made
// first.
func (g *gather) freeze(l *line, call *shared) []wire.ArmJob {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.close(call)
	if call.jobs != nil {
		return call.jobs
	}
	call.jobs = make([]wire.ArmJob, 0, len(call.callers))
	for _, c := range call.callers {
		if !c.gone {
			c.place = len(call.jobs)
			call.jobs = append(call.jobs, c.job)
		}
	}
	return call.jobs
}

// isOver says whether a context has ended, or does now: a connection with its deadline
// may fail a moment before it says so.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
