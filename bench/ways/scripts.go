package ways

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyfuse-io/keyfuse/bench/way"
	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

func scriptsWay() way.Way {
	return way.Way{
		Name:  "scripts",
		What:  "Keyfuse's scripts without its engine, which is measured against them: two loops, each claims 250, runs them one by one, settles them, and if nothing is due asks again a millisecond later",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			k, err := openKeyfuse(env)
			if err != nil {
				return nil, err
			}
			store, err := wire.NewStore(k.rdb, 0)
			return scripts{keyfuse: k, store: store}, err
		},
	}
}

const (
	scriptLoops = 2
	scriptRuns  = 250     // what the engine takes with a claim
	scriptBytes = 1 << 20 // likewise
	scriptLease = 15 * time.Second
	scriptBeat  = scriptLease / 5
	scriptPause = time.Millisecond
)

// scripts schedules as Keyfuse does.
type scripts struct {
	keyfuse
	store *wire.Store
}

func (s scripts) Work(ctx context.Context, ready func(), run func(n int)) error {
	loops, working := errgroup.WithContext(ctx)
	for range scriptLoops {
		c := &scriptClaimer{store: s.store, run: run, node: strings.ToLower(rand.Text()[:10])}
		if err := c.beat(ctx); err != nil { // none may claim before
			return unlessEnded(ctx, err)
		}
		loops.Go(func() error { return c.loop(working) })
	}
	ready()
	return unlessEnded(ctx, loops.Wait())
}

// scriptClaimer is one loop, and a node of its own to Keyfuse.
type scriptClaimer struct {
	store *wire.Store
	run   func(n int)
	node  string
	seq   int64
	beats int
	next  time.Time // heartbeat
}

func (c *scriptClaimer) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		if time.Now().After(c.next) {
			if err := c.beat(ctx); err != nil {
				return err
			}
		}
		some, err := c.take(ctx)
		if err != nil {
			return err
		}
		if !some {
			pause(ctx, scriptPause)
		}
	}
	return nil
}

// beat renews the lease, and frees the runs of nodes that have lost theirs.
func (c *scriptClaimer) beat(ctx context.Context) error {
	beat, err := c.store.Beat(ctx, wire.Pulse{Node: c.node, First: c.beats == 0, Lease: scriptLease, Info: "{}"})
	if err != nil {
		return err
	}
	c.beats++
	c.next = time.Now().Add(scriptBeat)
	for _, node := range beat.Gone {
		if _, err := c.store.Reap(ctx, node, "its node is gone"); err != nil {
			return err
		}
	}
	return nil
}

// take claims, runs and settles once, and says whether anything was due.
func (c *scriptClaimer) take(ctx context.Context) (some bool, err error) {
	c.seq++
	claimed, err := c.store.Claim(ctx, wire.ClaimRequest{
		Node: c.node, Seq: c.seq, Runs: scriptRuns, Bytes: scriptBytes, MaxPayload: client.DefaultMaxPayload,
		Tasks: []wire.Want{{Task: way.Task, Runs: scriptRuns}},
	})
	if err != nil || len(claimed.Runs) == 0 {
		return false, err
	}
	for _, run := range claimed.Runs {
		n, err := way.N(run.ID)
		if err != nil {
			return false, err
		}
		c.run(n)
	}
	_, err = c.store.Done(ctx, way.Task, claimed.Runs)
	return true, err
}
