package client

import (
	"context"
	mathrand "math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// gather lets concurrent callers share calls of Redis: while some are on their way,
// what further callers ask for gathers, and goes together as soon as one is answered.
// Who is alone never waits for another. Each caller asks for an A and is answered an
// R; only what has the same K goes together.
type gather[K comparable, A, R any] struct {
	most int         // that may go in one call
	size func(A) int // in bytes
	send send[K, A, R]

	mu    sync.Mutex
	lines map[K]*line[A, R]
}

// send makes a call, and answers in the order of what was asked. If it is made again,
// with the same token, Redis knows what it did before. After an error the answers are
// those of what was done before it.
type send[K comparable, A, R any] func(ctx context.Context, key K, token int64, asked []A) ([]R, error)

// line is where gathers what can go in one call.
type line[A, R any] struct {
	flying chan struct{} // holds a value for each call that is on its way
	open   *shared[A, R] // that further callers may join; nil if there is none
}

// maxFlying is how many calls of a line are on their way at a time: one would do,
// but a connection that hangs must not stop the others.
const maxFlying = 2

// shared is a call for several callers. One of them leads it. If that one's context
// ends meanwhile, another makes the same call again, under the same token.
type shared[A, R any] struct {
	token   int64
	callers []*caller[A]
	bytes   int
	asked   []A           // nil until it is sent; the same whenever it is made again
	turn    chan struct{} // holds the leader's value
	done    chan struct{} // closed when the rest is there

	answers []R
	err     error
}

// caller waits for the answer at its place among those of the call.
type caller[A any] struct {
	asks  A
	place int
	gone  bool // before it was sent: then it never is
}

func newGather[K comparable, A, R any](most int, size func(A) int, send send[K, A, R]) *gather[K, A, R] {
	return &gather[K, A, R]{most: most, size: size, send: send, lines: make(map[K]*line[A, R])}
}

// ask goes together with what other callers ask. What a caller asks whose context ends
// before it is sent is not done; if it ends later, it may be, as with any call. It must
// not change any more: another caller may send it when its own has left.
func (g *gather[K, A, R]) ask(ctx context.Context, key K, asks A) (R, error) {
	if err := ctx.Err(); err != nil {
		return *new(R), err
	}
	l, call, self := g.join(key, asks)
	for {
		select {
		case <-call.done:
			return call.answer(self)
		case <-ctx.Done():
			if call.isDone() {
				return call.answer(self)
			}
			g.leave(l, call, self)
			return *new(R), ctx.Err()
		case call.turn <- struct{}{}:
			g.lead(ctx, key, l, call)
		}
	}
}

func (c *shared[A, R]) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *shared[A, R]) answer(self *caller[A]) (R, error) {
	if self.place < len(c.answers) {
		return c.answers[self.place], nil
	}
	return *new(R), c.err
}

func (g *gather[K, A, R]) join(key K, asks A) (*line[A, R], *shared[A, R], *caller[A]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[key]
	if l == nil {
		l = &line[A, R]{flying: make(chan struct{}, maxFlying)}
		g.lines[key] = l
	}
	size := g.size(asks)
	if l.open == nil || len(l.open.callers) == g.most || l.open.bytes+size > maxChunkBytes {
		l.open = &shared[A, R]{token: mathrand.Int64(), turn: make(chan struct{}, 1), done: make(chan struct{})}
	}
	self := &caller[A]{asks: asks}
	l.open.callers = append(l.open.callers, self)
	l.open.bytes += size
	return l, l.open, self
}

// leave is for a caller whose context has ended. Nobody may join its call any more,
// for if all have left it is never made.
func (g *gather[K, A, R]) leave(l *line[A, R], call *shared[A, R], self *caller[A]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	self.gone = true
	l.close(call)
}

// close keeps further callers from joining a call.
func (l *line[A, R]) close(call *shared[A, R]) {
	if l.open == call {
		l.open = nil
	}
}

// lead makes a call, unless that was done. The caller has its turn.
func (g *gather[K, A, R]) lead(ctx context.Context, key K, l *line[A, R], call *shared[A, R]) {
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
	if len(l.flying) > 1 { // there are others: those who are about to ask can still join
		runtime.Gosched()
	}
	answers, err := g.send(ctx, key, call.token, g.freeze(l, call))
	if err != nil && isOver(ctx) {
		return // it may be the leader's trouble alone
	}
	call.answers, call.err = answers, err
	close(call.done)
}

// freeze is what a call sends: what those ask who have not left before it was made
// first.
func (g *gather[K, A, R]) freeze(l *line[A, R], call *shared[A, R]) []A {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.close(call)
	if call.asked != nil {
		return call.asked
	}
	call.asked = make([]A, 0, len(call.callers))
	for _, c := range call.callers {
		if !c.gone {
			c.place = len(call.asked)
			call.asked = append(call.asked, c.asks)
		}
	}
	return call.asked
}

// isOver says whether a context has ended, or does now: a connection with its deadline
// may fail a moment before it says so.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
