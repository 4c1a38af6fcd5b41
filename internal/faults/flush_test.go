package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// flush loses everything on purpose, when nothing else is under way: all of it is
// gone and reported as such, the daemons live on, and what comes after it runs.
func (h *harness) flush() {
	ctx, rng := h.t.Context(), rand.New(rand.NewPCG(h.opts.seed, 3))
	var pending, busy []string
	for i := range 20 {
		pending, busy = append(pending, fmt.Sprint("pending:", i)), append(busy, fmt.Sprint("busy:", i))
		h.load.arm(ctx, rng, "flushed", client.Spec{ID: pending[i], Task: taskPlain, In: time.Hour}, "-")
		h.load.arm(ctx, rng, "flushed", client.Spec{ID: busy[i], Task: taskPlain}, "10000")
	}
	h.await("the handlers that are to be flushed", func() bool { return h.book.allStarted(busy) })
	h.calm(h.opts.lease) // each daemon has a lease to lose
	flushed := time.Now()
	h.must(h.site.masters(ctx, func(ctx context.Context, server *redis.Client) error { return server.FlushAll(ctx).Err() }))
	for _, id := range slices.Concat(pending, busy) {
		h.book.answered(id, h.book.begin(id, "", step{op: cancel}), done, 0, false)
		if _, err := h.load.jobs.Get(ctx, id); !errors.Is(err, client.ErrNotFound) {
			h.problem("%q after FLUSHALL: %v", id, err)
		}
	}
	for i := range 50 {
		h.load.single(ctx, rng, fmt.Sprint("after:", i))
		h.load.bare(ctx, rng, fmt.Sprint("bare after:", i))
	}
	if !h.watch(h.opts.lease+recoverWithin, func() bool { return h.saidLost(flushed) }) {
		h.problem("not each daemon said that it lost its lease by FLUSHALL")
	}
	h.suffered = append(h.suffered, suffered{planned: planned{faults: []fault{{name: "FLUSHALL"}}}})
	h.settle()
}

// allStarted says that a handler of each id was called.
func (b *book) allStarted(ids []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool { return len(b.jobs[id].starts) == 0 })
}

// saidLost says that each daemon has told since then that its lease is gone.
func (h *harness) saidLost(since time.Time) bool {
	said := true
	h.book.locked(func() {
		for _, p := range h.fleet.places {
			lost := slices.ContainsFunc(p.lost, func(at int64) bool { return at > since.UnixNano() })
			said = said && lost
		}
	})
	return said
}
