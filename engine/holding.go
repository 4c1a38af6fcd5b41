package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// holding is the leases that a node has in its hands: claimed, and their outcome not
// in Redis yet.
type holding struct {
	mu     sync.Mutex
	leases map[string]struct{}
	since  time.Time // by Redis's clock: whatever was claimed before was heard of
	looked time.Time // when Redis was last asked what it takes to be held
}

func newHolding() *holding { return &holding{leases: make(map[string]struct{})} }

// claimed notes the answer of a claim. All earlier ones have been answered by then.
func (h *holding) claimed(now time.Time, runs ...[]wire.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = now
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

// snapshot is what is held now.
func (h *holding) snapshot() (leases map[string]struct{}, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.leases), h.since
}

// isDue says whether it is time to ask Redis again: something was missed since the
// last time, or that was long ago.
func (h *holding) isDue(missed, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if missed.Before(h.looked) && now.Sub(h.looked) < recallEvery {
		return false
	}
	h.looked = now
	return true
}

// recallEvery is the time between two looks for forgotten leases, if nothing was
// missed in between.
const recallEvery = time.Minute

const errForgotten = "its outcome was lost: Redis came back, or failed over, without the last writes"

// recallForgotten frees runs that Redis takes to be in this node's hands, and that are
// not. So it is after a failover, or a restart, that lost an outcome which the old
// server had acknowledged: the lease is the node's, which is well, and so nobody else
// would ever free it.
func (p *partition) recallForgotten(ctx context.Context) error {
	name, _ := p.node.current()
	held, since := p.holding.snapshot() // before Redis is asked: what ends meanwhile is in it
	for _, task := range p.tasks {
		leases, err := p.store.LeasesOf(ctx, task, name)
		if err != nil {
			return err
		}
		var lost []wire.Failure
		for lease, claimed := range leases {
			if _, ok := held[lease]; !ok && claimed.Before(since) && len(lost) < wire.MaxSettle {
				lost = append(lost, wire.Failure{Run: wire.Run{Task: task, Lease: lease}, Verdict: wire.Retry, Error: errForgotten})
			}
		}
		if len(lost) == 0 {
			continue
		}
		if _, err := p.store.Fail(ctx, task, lost); err != nil {
			return err
		}
		p.log.Warn("runs whose outcome Redis has lost are free, and run again", "task", task, "runs", len(lost))
		p.look.give()
	}
	return nil
}
