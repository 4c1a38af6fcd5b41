package engine

import (
	"context"
	"errors"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// How much a claim takes at most: few enough that its script blocks Redis for a
// few ms at most.
const (
	claimRuns  = 250
	claimBytes = 1 << 20
)

// How long the engine sleeps at most without looking at the index, in case it
// missed that an earlier job was armed.
const (
	pollHealthy  = 5 * time.Second
	pollDegraded = time.Second / 2
)

// claimer is the claim loop's own state.
type claimer struct {
	*partition
	node string
	seq  int64 // of the last claim that was answered

	failures int // since then

	recalled time.Time // when forgotten runs were last looked for, by Redis's clock
}

func (p *partition) claimLoop(ctx context.Context) {
	c := &claimer{partition: p}
	defer c.recall(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.look:
		}
		wait := c.claimAll(ctx)
		c.recallIfDue(ctx)
		p.ready.hasClaimed(p)
		timer.Reset(wait)
	}
}

// claimAll claims until there is nothing more to claim now, or no room. It
// returns how long to wait until the next look.
func (c *claimer) claimAll(ctx context.Context) time.Duration {
	poll := pollHealthy
	if c.live.reason() != "" {
		poll = pollDegraded
	}
	for ctx.Err() == nil {
		failed := c.failures > 0
		var room room // after a failure it only asks what the same call took: the next one may hang too
		if !failed {
			if room = c.pool.reserve(min(claimRuns, c.out.room()), c.look); room.runs == 0 {
				return poll // whoever frees room gives a hint
			}
		}
		sent := time.Now()
		claimed, err := c.claim(ctx, room)
		if err == nil { // before any of them can be settled
			c.holding.claimed(claimed.Runs, claimed.Broken)
		}
		c.pool.add(room, c.partition, claimed.Runs)
		if errors.Is(err, wire.ErrNodeGone) {
			return c.beatEvery() // the next heartbeat says so, and gives a hint
		}
		c.note("claiming", err)
		if err != nil {
			c.failures++
			c.backlog.set(false)
			return min(firstWait<<min(c.failures, 5), lastWait)
		}
		c.failures = 0
		if observe := c.cfg.Observer.Claimed; observe != nil && len(claimed.Runs) > 0 {
			observe(len(claimed.Runs), time.Since(sent))
		}
		c.noteClock(sent, claimed.Now)
		c.bury(claimed.Broken)
		if failed {
			continue
		}
		wait := poll
		if !claimed.Next.IsZero() {
			wait = min(claimed.Next.Sub(c.redisNow()), poll)
		}
		c.backlog.set(wait <= 0)
		if wait > 0 {
			return wait
		}
	}
	return poll
}

// claim asks once. After an error the same call is made again, with the same
// number, so that runs it took before its answer was lost are answered again.
func (c *claimer) claim(ctx context.Context, r room) (wire.Claimed, error) {
	name, _ := c.partition.node.current()
	if name != c.node {
		c.node, c.seq = name, 0
	}
	if c.space.IsCluster() { // what hangs keeps room from the partitions of other servers
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callLimit/4)
		defer cancel()
	}
	claimed, err := c.store.Claim(ctx, wire.ClaimRequest{
		Node: name, Seq: c.seq + 1, Runs: r.runs, Bytes: claimBytes, Tasks: r.wants, MaxPayload: c.cfg.MaxPayload,
	})
	if err != nil {
		return claimed, err
	}
	c.seq++
	if claimed.Refused > 0 {
		c.log.Warn("due jobs that can't be run are left alone; keyfuse doctor lists them",
			"count", claimed.Refused, "example", claimed.Example)
	}
	return claimed, nil
}

// recall makes a claim again that was not answered when the intake ended. It
// asks for nothing new: what the first call took is given back. If that fails
// too, the node must not leave: only the end of its lease frees those runs.
func (c *claimer) recall(ctx context.Context) {
	name, _ := c.partition.node.current()
	if c.failures == 0 || name != c.node {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	claimed, err := c.claim(ctx, room{})
	c.unsure = err != nil && !errors.Is(err, wire.ErrNodeGone)
	c.note("claiming", err)
	c.giveBack(claimed.Runs...)
	c.bury(claimed.Broken)
}

// bury puts runs among the dead letters whose records can't be read: somebody
// else has written there, and the others must go on.
func (c *claimer) bury(broken []wire.Run) {
	for _, run := range broken {
		c.log.Error("a run's record can't be read; it goes to the dead letters as it is", "task", run.Task, "run_id", run.RunID)
		c.out.add(outcome{run: run, Firing: Firing{Job: jobOf(run), Outcome: Died, Err: errBroken}})
	}
}

var errBroken = errors.New("its record can't be read")
