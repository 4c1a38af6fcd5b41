package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// partition is an engine's work on one partition of the data: all of it, unless
// Redis is a cluster.
type partition struct {
	*Engine
	store    *wire.Store
	node     *node
	holding  *holding
	inbox    *inbox
	out      *settler
	look     hint // a reason to claim
	counters *counters
	backlog  backlog
	swept    *sweepRequests
	live     liveness

	clock      clock        // of the partition's server
	nodes      atomic.Int64 // that hold a lease
	neighbours atomic.Int64 // partitions on the same server, this one included
	unsure     bool         // after the intake: the node may hold runs that it never heard of
}

func newPartition(e *Engine, store *wire.Store, engine string) *partition {
	p := &partition{
		Engine: e, store: store,
		node:    newNode(func(losses int) string { return store.NodeName(engine, losses) }),
		holding: newHolding(), inbox: newInbox(), counters: newCounters(), look: newHint(), swept: newSweepRequests(),
	}
	p.neighbours.Store(1)
	p.live.tell, p.live.canary = p.tellDegraded, e.cfg.Observer.Canary
	p.out = newSettler(p)
	return p
}

// start waits for a Redis that answers, and takes the node's first lease.
func (p *partition) start(ctx context.Context) error {
	err := retry(ctx, func() error {
		err := p.store.CheckFormat(ctx)
		if err == nil {
			err = p.beat(ctx)
		}
		if err == nil {
			err = p.loadThresholds(ctx)
		}
		if errors.Is(err, wire.ErrFormat) {
			return final(err)
		}
		p.note("start", err)
		return err
	})
	if err != nil || p.cfg.Notifications != Require {
		return err
	}
	if _, err := p.ensureFlags(ctx); err != nil {
		return fmt.Errorf("keyspace notifications are required: %w", err)
	}
	return nil
}

// take is the intake: it looks for what is due until ctx ends.
func (p *partition) take(ctx context.Context) {
	var taking sync.WaitGroup
	taking.Go(func() { p.adoptLoop(ctx) })
	taking.Go(func() { p.countLoop(ctx) })
	taking.Go(func() { p.claimLoop(ctx) })
	taking.Go(func() { p.sweepLoop(ctx) })
	taking.Wait()
}

// note notes how a call to Redis went.
func (p *partition) note(what string, err error) {
	if observe := p.cfg.Observer.Failed; observe != nil && err != nil && !errors.Is(err, context.Canceled) {
		observe(what, err)
	}
	p.troubles.note(what, p.store.Partition(), err)
}

// sayOnce logs what befalls all partitions of a server, or of a cluster, at the same
// time: it is said once a heartbeat at most.
func (p *partition) sayOnce(text string) {
	if p.troubles.isNews(text, p.beatEvery()) {
		p.log.Error(text)
	}
}

// redisNow is the time by Redis's clock, as far as this node knows it.
func (p *partition) redisNow() time.Time { return p.clock.now() }

// noteClock learns Redis's clock from an answer that was asked for at sent.
func (p *partition) noteClock(sent, redisTime time.Time) { p.clock.note(sent, time.Now(), redisTime) }
