package engine

import (
	"context"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

const (
	// sweepEvery is the time between sweeps when nothing asks for one: a bare
	// job that lives longer than that is in the index before it is due, and so
	// runs on time however late its event would come.
	sweepEvery = 5 * time.Second
	sweepSlack = time.Second / 10 // so that a tick is not too early by a hair
	// sweepShare bounds what sweeping costs Redis: the next sweep waits so many
	// times as long as the last one took. Each partition's looks at all keys of its
	// server, so that those of one server share this.
	sweepShare = 20
	// orphanGrace is how long a class key may be there without its fuse before
	// it is fired: a client may be between the two.
	orphanGrace = 2 * time.Second
)

// Sweep is what a sweep found.
type Sweep struct {
	Known    int           // class keys of jobs that are in the index
	Indexed  int           // bare jobs that no index knew, and that are in it now
	Immortal int           // whose fuse has no TTL
	Refused  int           // that make no job
	Took     time.Duration // by Redis; the pauses between its steps left out
}

// sweepRequests gathers what asks for a sweep: the latest time that one must
// have begun after.
type sweepRequests struct {
	asked hint

	mu    sync.Mutex
	since time.Time

	refused int // class keys that make no job, when that was last said
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
// the subscription, and every few seconds. One node sweeps at a time, and a sweep
// counts for all nodes that asked before it began.
func (p *partition) sweepLoop(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.swept.asked:
		}
		since := p.swept.wanted()
		mine, err := p.sweep(ctx, since)
		if err == nil && mine {
			err = p.check(ctx, since)
		}
		p.note("sweeping", err)
		if err != nil {
			p.swept.asked.give()
			pause(ctx, lastWait)
		}
	}
}

// sweep looks at every class key, and says so, unless the last sweep will do.
// Between two steps it leaves Redis alone for as long as the step took, and for much
// longer while claims lag behind.
func (p *partition) sweep(ctx context.Context, since time.Time) (bool, error) {
	name, _ := p.node.current()
	var found wire.Adopted
	step := wire.SweepStep{
		Node: name, Since: since, Prefix: p.cfg.IDPrefix, Wait: sweepEvery - sweepSlack, Share: sweepShare * int(p.neighbours.Load()),
		Grace: orphanGrace, MaxPayload: p.cfg.MaxPayload,
	}
	for {
		start := time.Now()
		swept, err := p.store.Sweep(ctx, step)
		if err != nil || !swept.Mine {
			return false, err
		}
		took := time.Since(start)
		step.Cost += took
		step.Cursor = swept.Cursor
		found.Add(swept.Adopted)
		if swept.Indexed > 0 {
			p.look.give()
		}
		if step.Cursor == "" {
			break
		}
		if !pause(ctx, took) {
			return false, context.Cause(ctx)
		}
		p.backlog.wait(ctx, min(behindShare*took, maxAdoptDelay))
	}
	p.tellSwept(found, step.Cost)
	return true, nil
}

func (p *partition) tellSwept(found wire.Adopted, cost time.Duration) {
	if found.Refused != p.swept.refused {
		p.tellRefused(found)
		p.swept.refused = found.Refused
	}
	p.log.Debug("swept", "known", found.Known, "indexed", found.Indexed, "immortal", found.Immortal, "refused", found.Refused, "took", cost)
	if p.cfg.Observer.Swept != nil {
		p.cfg.Observer.Swept(Sweep{found.Known, found.Indexed, found.Immortal, found.Refused, cost})
	}
}
