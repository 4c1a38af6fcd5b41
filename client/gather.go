package client

import (
	"context"
	mathrand "math/rand/v2"
	"sync"

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
	token int64
	jobs  []wire.ArmJob
	bytes int
	turn  chan struct{} // holds the leader's value
	done  chan struct{} // closed when the rest is there

	results   []wire.ArmResult
	confirmed wire.Confirmed
	err       error
}

func newGather(confirm wire.Confirm) *gather {
	return &gather{confirm: confirm, lines: make(map[lineKey]*line)}
}

// arm arms one job, together with those of other callers. A job whose caller's
// context ends meanwhile may be armed, as with any call.
func (g *gather) arm(ctx context.Context, store *wire.Store, mode IfExists, job wire.ArmJob) (wire.ArmResult, wire.Confirmed, error) {
	l, call, place := g.join(lineKey{store, mode}, job)
	for {
		select {
		case <-call.done:
			if call.err != nil {
				return wire.ArmResult{}, wire.Confirmed{}, call.err
			}
			return call.results[place], call.confirmed, nil
		case <-ctx.Done():
			g.seal(l, call) // nobody may come later and send this job then
			return wire.ArmResult{}, wire.Confirmed{}, ctx.Err()
		case call.turn <- struct{}{}:
			g.lead(ctx, l, call)
			<-call.turn
		}
	}
}

func (g *gather) join(key lineKey, job wire.ArmJob) (*line, *shared, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[key]
	if l == nil {
		l = &line{lineKey: key, flying: make(chan struct{}, maxFlying)}
		g.lines[key] = l
	}
	if l.open == nil || len(l.open.jobs) == wire.MaxArm || l.open.bytes+len(job.Payload) > maxChunkBytes {
		l.open = &shared{token: mathrand.Int64(), turn: make(chan struct{}, 1), done: make(chan struct{})}
	}
	call := l.open
	call.jobs = append(call.jobs, job)
	call.bytes += len(job.Payload)
	return l, call, len(call.jobs) - 1
}

// seal keeps further jobs from joining a call.
func (g *gather) seal(l *line, call *shared) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.open == call {
		l.open = nil
	}
}

// lead makes a call, unless that was done. The caller has its turn.
func (g *gather) lead(ctx context.Context, l *line, call *shared) {
	select {
	case <-call.done:
		return
	default:
	}
	select {
	case <-ctx.Done():
		return
	case l.flying <- struct{}{}:
		defer func() { <-l.flying }()
	}
	g.seal(l, call)
	results, _, confirmed, err := l.store.ArmConfirmed(ctx, g.confirm, l.mode, call.token, call.jobs)
	if err != nil && ctx.Err() != nil {
		return // it may be the leader's trouble alone
	}
	call.results, call.confirmed, call.err = results, confirmed, err
	close(call.done)
}
