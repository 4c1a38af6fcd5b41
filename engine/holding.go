package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// holding is the leases that a node has in its hands: claimed, and their outcome not
// in Redis yet.
type holding struct {
	mu     sync.Mutex
	leases map[string]struct{}
}

func newHolding() *holding { return &holding{leases: make(map[string]struct{})} }

func (h *holding) claimed(runs ...[]wire.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, list := range runs {
		for i := range list {
			h.leases[list[i].Lease] = struct{}{}
		}
	}
}

func (h *holding) settled(group []outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range group {
		delete(h.leases, group[i].run.Lease)
	}
}

func (h *holding) snapshot() map[string]struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.leases)
}

// recallEvery is the time between two looks for forgotten leases, if nothing was
// missed in between.
const recallEvery = time.Minute

const errForgotten = "its outcome was lost: Redis came back, or failed over, without the last writes"

// recallIfDue frees runs that Redis takes to be in this node's hands, and that are
// not. So it is after a failover, or a restart, that lost an outcome which the old
// server had acknowledged: the lease is the node's, which is well, and so nobody else
// would ever free it.
//
// The claimer does it, while no claim is under way or unanswered: else a run could be
// taken for forgotten that was just claimed.
func (c *claimer) recallIfDue(ctx context.Context) {
	now, missed := c.redisNow(), c.swept.wanted()
	if c.failures > 0 || missed.Before(c.recalled) && now.Sub(c.recalled) < recallEvery {
		return
	}
	err := c.recallForgotten(ctx)
	c.note("looking for forgotten runs", err)
	if err == nil {
		c.recalled = now
	}
}

func (c *claimer) recallForgotten(ctx context.Context) error {
	held := c.holding.snapshot() // before Redis is asked: what ends meanwhile is in it
	for _, task := range c.tasks {
		leases, err := c.store.LeasesOf(ctx, task, c.node)
		if err != nil {
			return err
		}
		var lost []wire.Failure
		for _, lease := range leases {
			if _, ok := held[lease]; !ok {
				lost = append(lost, wire.Failure{Run: wire.Run{Task: task, Lease: lease}, Verdict: wire.Retry, Error: errForgotten})
			}
		}
		for some := range slices.Chunk(lost, wire.MaxSettle) {
			if _, err := c.store.Fail(ctx, task, some); err != nil {
				return err
			}
			c.log.Warn("runs whose outcome Redis has lost are free, and run again", "task", task, "runs", len(some))
			c.look.give()
		}
	}
	return nil
}
