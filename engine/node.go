package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// node is this engine's name among the others, and the lease that stands behind
// all of its runs. A name whose lease was lost is never used again.
type node struct {
	rule func(losses int) string // how it is called

	mu     sync.Mutex
	losses int
	name   string
	was    string          // the name before, until Redis knows that it is given up
	lost   context.Context // ends when the lease of this name is lost; all handlers' context
	end    context.CancelCauseFunc
	beaten bool // this name has had a heartbeat
	until  time.Time
}

func newNode(rule func(losses int) string) *node {
	n := &node{rule: rule, losses: -1}
	n.rename()
	return n
}

func (n *node) rename() {
	n.was = n.name
	n.losses++
	n.name = n.rule(n.losses)
	n.lost, n.end = context.WithCancelCause(context.Background())
	n.beaten = false
}

// current is the name, and a context that lives while its lease does.
func (n *node) current() (string, context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name, n.lost
}

// stop ends the handlers' context at the end of a drain.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end(ErrShutdown)
}

// beating is the name for the next heartbeat, whether it is its first one, and then
// the name before.
func (n *node) beating() (name string, first bool, was string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.beaten {
		return n.name, false, ""
	}
	return n.name, true, n.was
}

// renewed notes a name's heartbeat that was sent at a time and answered. It
// reports whether the lease had been lost, in which case the name is a new one
// now. An answer for a name that expired meanwhile says nothing any more.
func (n *node) renewed(name string, sent time.Time, held bool, length time.Duration) (lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != n.name {
		return false
	}
	if n.beaten && !held {
		n.end(ErrLeaseLost)
		n.rename()
		return true
	}
	n.beaten, n.until = true, sent.Add(length)
	return false
}

// expire gives the lease up if it has run out by this machine's own clock: no
// heartbeat got through, so others may have taken the runs.
func (n *node) expire() (lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.beaten || time.Now().Before(n.until) {
		return false
	}
	n.end(ErrLeaseLost)
	n.rename()
	return true
}

// left is how long the lease still holds, or a wait while there is none.
func (n *node) left(wait time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.beaten {
		return wait
	}
	return time.Until(n.until)
}

// A lease holds for two thirds of what the configuration calls lease, and is
// renewed every fifth of that: after a death, others notice at their next beat,
// which makes 2/3 + 1/5 < 1 of it.
func (p *partition) leaseLength() time.Duration { return p.cfg.Lease * 2 / 3 }
func (p *partition) beatEvery() time.Duration   { return p.cfg.Lease / 5 }

func (p *partition) beatLoop(ctx context.Context) {
	defer p.leave()
	ticker := time.NewTicker(p.beatEvery())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p.cfg.Notifications != Off {
			p.live.check()
			p.live.beating()
		}
		p.note("heartbeat", p.beat(ctx))
	}
}

// leaseLoop ends the handlers' context at the moment from which others may take
// the runs. A heartbeat on its way can't be waited for: it may hang for longer.
func (p *partition) leaseLoop(ctx context.Context) {
	for pause(ctx, p.node.left(p.beatEvery())) {
		if p.node.expire() {
			p.sayOnce("lease lost: no heartbeat got through; handlers are cancelled, and others may run their jobs")
		}
	}
}

// beat renews the lease, and reaps nodes that did not renew theirs.
func (p *partition) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.beatEvery())
	defer cancel()
	name, first, was := p.node.beating()
	sent := time.Now()
	beat, err := p.store.Beat(ctx, wire.Pulse{
		Node: name, First: first, Was: was, Lease: p.leaseLength(), Info: p.describe(), Canary: p.cfg.Notifications != Off,
	})
	if err != nil {
		return err
	}
	if beat.Format != nil {
		p.refuse(beat.Format)
		return beat.Format
	}
	if beat.Empty {
		p.sayOnce("everything in this Redis was deleted, and all jobs with it; going on with what comes")
		if err := p.store.CheckFormat(ctx); err != nil {
			return err
		}
	}
	p.noteClock(sent, beat.Now)
	p.counters.meet(beat.Defined)
	p.nodes.Store(beat.Nodes)
	if p.node.renewed(name, sent, beat.Held, p.leaseLength()) {
		p.sayOnce("lease lost: this node was silent for too long; its handlers are cancelled, and others run their jobs")
		return p.beat(ctx)
	}
	if first {
		p.look.give() // claims had to wait for this lease
	}
	return p.reap(ctx, beat.Gone)
}

// reap frees the runs of nodes that were given up.
func (p *partition) reap(ctx context.Context, gone []string) error {
	var errs []error
	for _, name := range gone {
		freed, err := p.store.Reap(ctx, name, "lease lost: node "+name+" stopped while it ran the job")
		if freed > 0 {
			p.log.Warn("a node is gone; its runs are free", "node", name, "runs", freed)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leave takes the node off the list at once, so that nobody waits for its lease. What
// Redis still takes to be in its hands is freed.
func (p *partition) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	name, _ := p.node.current()
	if p.out.clean() && !p.unsure {
		freed, err := p.store.Reap(ctx, name, errForgotten)
		if freed > 0 {
			p.log.Warn("runs whose outcome Redis has lost are free, and run again", "runs", freed)
		}
		p.note("leaving", err)
	}
}

// describe is what the node says of itself; client.Node reads it.
func (p *partition) describe() string {
	host, _ := os.Hostname() // a node without a name is still a node
	degraded, parts := p.deaf.reason()
	if p.space.IsCluster() && parts > 0 {
		degraded = fmt.Sprintf("%d of %d partitions: %s", parts, len(p.parts), degraded)
	}
	text, err := json.Marshal(map[string]any{
		"Host": host, "PID": os.Getpid(), "Version": p.cfg.Version,
		"Started": p.started, "Tasks": p.tasks, "Degraded": degraded,
	})
	if err != nil {
		return "{}" // it marshals nothing that can fail
	}
	return string(text)
}
