package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// load is what applications do meanwhile. Each call is made until it is answered:
// how often does not matter, since the book knows.
type load struct {
	book *book
	jobs *client.Client
	raw  *wire.Space // of a connection that makes each command once
	rng  *rand.Rand  // of the goroutine that makes flows

	confirm int // replicas that must have what is scheduled

	total  int           // jobs to make
	made   int           // so far
	pace   time.Duration // between two jobs, at least
	spread time.Duration // how far ahead jobs are due at most
	budget budget
	flows  sync.WaitGroup
	places chan struct{} // bounds the flows under way
}

// budget is how many jobs may have been made by now: it grows as the faults go on,
// so that each of them meets a load.
type budget struct {
	mu      sync.Mutex
	allowed int
	more    chan struct{}
}

func newBudget() budget { return budget{more: make(chan struct{}, 1)} }

func (b *budget) set(allowed int) {
	b.mu.Lock()
	b.allowed = max(b.allowed, allowed)
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// wait waits until so many are allowed, and says whether they are.
func (b *budget) wait(ctx context.Context, n int) bool {
	for {
		b.mu.Lock()
		enough := b.allowed >= n
		b.mu.Unlock()
		if enough {
			return true
		}
		select {
		case <-b.more:
		case <-ctx.Done():
			return false
		}
	}
}

const maxFlows = 256

// run makes jobs until there are as many as there should be, and waits until all
// of their calls are answered.
func (l *load) run(ctx context.Context) {
	l.places = make(chan struct{}, maxFlows)
	var counting sync.WaitGroup
	hits, stop := context.WithCancel(ctx)
	for i := range 4 {
		rng := rand.New(rand.NewPCG(l.rng.Uint64(), uint64(i)))
		counting.Go(func() { l.hitAll(hits, ctx, rng, i) })
	}
	next := time.Now()
	for l.made < l.total && l.budget.wait(ctx, l.made+1) {
		n := l.flow(ctx)
		l.made += n
		// A load that was held up does not make up for all of it at once.
		next = next.Add(time.Duration(n) * l.pace)
		if behind := time.Since(next); behind > time.Second {
			next = next.Add(behind - time.Second)
		}
		if !pause(ctx, time.Until(next)) {
			break
		}
	}
	l.flows.Wait()
	stop()
	counting.Wait()
}

// flow begins the next jobs, and gives how many they are.
func (l *load) flow(ctx context.Context) int {
	n, flow := l.draw()
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return n
	}
	rng := rand.New(rand.NewPCG(l.rng.Uint64(), l.rng.Uint64()))
	l.flows.Go(func() {
		defer func() { <-l.places }()
		flow(ctx, rng)
	})
	return n
}

// draw chooses what kind of jobs come next.
func (l *load) draw() (int, func(context.Context, *rand.Rand)) {
	first := l.made
	id := func(kind string) string { return fmt.Sprintf("%s:%d", kind, first) }
	switch n := l.rng.IntN(100); {
	case n < 3:
		many := min(1+l.rng.IntN(100), l.total-l.made)
		return many, func(ctx context.Context, rng *rand.Rand) { l.bulk(ctx, rng, first, many) }
	case n < 35:
		return 1, func(ctx context.Context, rng *rand.Rand) { l.single(ctx, rng, id("single \xff\n")) } // any bytes
	case n < 60:
		return 1, func(ctx context.Context, rng *rand.Rand) { l.bare(ctx, rng, id("bare")) }
	case n < 75:
		return 1, func(ctx context.Context, rng *rand.Rand) { l.moved(ctx, rng, id("moved")) }
	case n < 90:
		return 1, func(ctx context.Context, rng *rand.Rand) { l.cancelled(ctx, rng, id("cancelled")) }
	default:
		return 1, func(ctx context.Context, rng *rand.Rand) { l.replaced(ctx, rng, id("replaced")) }
	}
}

// callWithin is how long one try of a call may take.
const callWithin = 3 * time.Second

// until makes a call until try says that it was answered.
func until(ctx context.Context, rng *rand.Rand, try func(ctx context.Context) bool) bool {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callWithin)
		answered := try(call)
		cancel()
		if answered {
			return true
		}
		pause(ctx, 50*time.Millisecond+time.Duration(rng.IntN(200))*time.Millisecond)
	}
	return false
}

// pause waits, and says whether it did so to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// isAnswer says that an error is what Keyfuse says of a call, and no fault's.
func isAnswer(err error) bool {
	for _, known := range []error{
		client.ErrNotFound, client.ErrExists, client.ErrForeignKey, client.ErrRunning, client.ErrDead, client.ErrCounting,
		client.ErrInvalid, client.ErrNoThreshold, client.ErrNotCounter, client.ErrOverflow, client.ErrItems, client.ErrPending,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// drawIn is how long from now a job is due: at once, while the fault of now is
// there, or when it is over.
func (l *load) drawIn(rng *rand.Rand) time.Duration {
	part := [...]time.Duration{0, 30, 5, 2, 1}[rng.IntN(5)]
	if part == 0 {
		return 0
	}
	return drawUpTo(rng, l.spread/part)
}

// drawWork is what a handler does, as perform reads it.
func drawWork(rng *rand.Rand) string {
	switch n := rng.IntN(1000); {
	case n < 20:
		return fmt.Sprint(1000 + rng.IntN(2000))
	case n < 100:
		return fmt.Sprint(1 + rng.IntN(50))
	case n < 150:
		return "fail"
	}
	return "-"
}

// drawUpTo is a time from 0 to less than d.
func drawUpTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)))
}
