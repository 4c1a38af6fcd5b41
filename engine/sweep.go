package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

const (
	// sweepEvery is the time between sweeps when nothing asks for one.
	sweepEvery = time.Minute
	// sweepShare bounds what sweeping costs Redis: after a long sweep the next
	// one waits so many times as long as it took.
	sweepShare = 30
	// orphanGrace is how long a class key may be there without its fuse before
	// it is fired: a client may be between the two.
	orphanGrace = 2 * time.Second
	scanCount   = 1000
)

// Sweep is what a sweep found.
type Sweep struct {
	Known    int // class keys of jobs that are in the index
	Indexed  int // bare jobs that no index knew, and that are in it now
	Immortal int // whose fuse has no TTL
	Refused  int // that make no job
	Took     time.Duration
}

// sweepRequests gathers what asks for a sweep: the latest time that one must
// have begun after.
type sweepRequests struct {
	asked hint

	mu    sync.Mutex
	since time.Time
}

func newSweepRequests() *sweepRequests { return &sweepRequests{asked: newHint()} }

func (r *sweepRequests) ask(since time.Time) {
	r.mu.Lock()
	if since.After(r.since) {
		r.since = since
	}
	r.mu.Unlock()
	r.asked.give()
}

func (r *sweepRequests) wanted() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since
}

// sweepLoop finds bare jobs that no event told of: at start, after each gap in
// the subscription, and every minute. One node sweeps at a time, and a sweep
// counts for all nodes that asked before it began.
func (e *Engine) sweepLoop(ctx context.Context) {
	every := sweepEvery
	for {
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			// Another node's sweep within the time will do.
			e.swept.ask(e.redisNow().Add(-every / 2))
		case <-e.swept.asked:
			timer.Stop()
		}
		took, err := e.sweepSince(ctx, e.swept.wanted())
		e.troubles.note("sweeping", err)
		if err != nil {
			e.swept.asked.give()
			pause(ctx, lastWait)
		}
		every = max(sweepEvery, sweepShare*took)
	}
}

// sweepSince sweeps unless a sweep began after a time; it waits for one that is
// under way.
func (e *Engine) sweepSince(ctx context.Context, since time.Time) (time.Duration, error) {
	name, _ := e.node.current()
	for {
		last, err := e.store.LastSweep(ctx)
		if err != nil || !last.Before(since) {
			return 0, err
		}
		mine, err := e.store.LockSweep(ctx, name)
		if err != nil {
			return 0, err
		}
		if mine {
			break
		}
		if !pause(ctx, time.Second) {
			return 0, nil
		}
	}
	began, start := e.redisNow(), time.Now()
	found, err := e.sweep(ctx, name)
	took := time.Since(start)
	if err == nil {
		err = e.store.NoteSweep(ctx, began)
	}
	if err = errors.Join(err, e.store.UnlockSweep(context.WithoutCancel(ctx))); err != nil {
		return took, err
	}
	e.log.Debug("swept", "known", found.Known, "indexed", found.Indexed, "immortal", found.Immortal, "refused", found.Refused, "took", took)
	if e.cfg.Observer.Swept != nil {
		e.cfg.Observer.Swept(Sweep{found.Known, found.Indexed, found.Immortal, found.Refused, took})
	}
	return took, nil
}

// sweep looks at every class key. Between two steps it leaves Redis alone for as
// long as the step took.
func (e *Engine) sweep(ctx context.Context, name string) (wire.Adopted, error) {
	var found wire.Adopted
	pattern := e.store.ClassPattern(e.cfg.IDPrefix)
	for cursor := uint64(0); ; {
		start := time.Now()
		keys, next, err := e.store.Redis().Scan(ctx, cursor, pattern, scanCount).Result()
		if err != nil {
			return found, err
		}
		for chunk := range slices.Chunk(e.idsOf(keys), wire.MaxAdopt) {
			adopted, err := e.adopt(ctx, wire.BySweep, chunk)
			if err != nil {
				return found, err
			}
			found.Add(adopted)
		}
		if cursor = next; cursor == 0 {
			e.tellRefused(found)
			return found, nil
		}
		if err := e.store.HoldSweep(ctx, name); err != nil {
			return found, err
		}
		if !pause(ctx, time.Since(start)) {
			return found, context.Cause(ctx)
		}
	}
}

func (e *Engine) idsOf(classKeys []string) []string {
	ids := make([]string, 0, len(classKeys))
	for _, key := range classKeys {
		if id, ok := e.store.IDOfClass(key); ok && wire.CheckID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
