package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

const (
	// maxAdoptDelay bounds how long adopting waits for claims to catch up.
	maxAdoptDelay = 2 * time.Second
	// behindShare is how many times as long as the last look the next one then waits
	// for them, so that looks cost a burst little.
	behindShare = 10
)

// adoptLoop indexes the bare jobs among the ids whose fuses were heard to
// expire. Most ids are of no concern: claimed already, or no jobs at all. While
// claims lag behind, the ids are mostly of jobs that are about to be claimed;
// looking them up would only slow that down.
func (p *partition) adoptLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.inbox.filled:
		}
		p.backlog.wait(ctx, maxAdoptDelay)
		ids, lost := p.inbox.takeAll()
		if lost {
			p.log.Warn("events come faster than they can be looked up; a sweep finds the rest")
			p.swept.ask(p.redisNow())
		}
		took := time.Duration(0)
		for chunk := range slices.Chunk(ids, wire.MaxAdopt) {
			p.backlog.wait(ctx, min(behindShare*took, maxAdoptDelay))
			err := retry(ctx, func() error {
				start := time.Now()
				adopted, err := p.adopt(ctx, chunk)
				took = time.Since(start)
				p.note("adopting", err)
				p.tellRefused(adopted)
				return err
			})
			if err != nil {
				return // the sweep at the next start finds the rest
			}
		}
	}
}

func (p *partition) adopt(ctx context.Context, ids []string) (wire.Adopted, error) {
	adopted, err := p.store.Adopt(ctx, wire.ByEvent, orphanGrace, p.cfg.MaxPayload, ids)
	if err == nil && adopted.Indexed+adopted.Known > 0 {
		p.look.give()
	}
	return adopted, err
}

// tellRefused says that there are class keys which make no job, in one line
// however many.
func (p *partition) tellRefused(found wire.Adopted) {
	if found.Refused > 0 {
		p.log.Warn("class keys that make no job are left alone; keyfuse doctor lists them",
			"count", found.Refused, "example", found.Example, "why", found.Why)
	}
}

// backlog knows whether there is more to claim than could be claimed yet.
type backlog struct {
	mu   sync.Mutex
	over chan struct{} // closed when there is none any more; nil if there is none
}

func (b *backlog) set(behind bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case behind && b.over == nil:
		b.over = make(chan struct{})
	case !behind && b.over != nil:
		close(b.over)
		b.over = nil
	}
}

// wait waits until there is no backlog, but no longer than d.
func (b *backlog) wait(ctx context.Context, d time.Duration) {
	b.mu.Lock()
	over := b.over
	b.mu.Unlock()
	if over == nil {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	case <-ctx.Done():
	}
}
