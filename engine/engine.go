// Package engine is the daemon's core: it hears that jobs are due, claims them,
// runs their handlers and settles what came of it.
//
//	listen → adopt, count ┐
//	timer, wake-up        ┼→ claim → run → settle
//	sweep, check ─────────┘
//
// What it promises:
//
//   - A run starts at its due time, never before, by Redis's clock alone.
//   - Hints may be lost. Events, wake-ups and timers only say when to look; the
//     due index in Redis is the truth, and the sweep finds what is not in it.
//     Likewise for thresholds: what other clients INCR is counted where they do it,
//     and the check finds what no event told of.
//   - A firing is claimed once, however many nodes listen, and only by a node
//     that serves its task and has room for it.
//   - At least once: a run ends when its outcome is in Redis. A node that dies
//     loses its lease, and its runs go to others; one that is cut off cancels
//     its handlers when its lease must be presumed lost.
//   - Shutting down is no failed attempt: what can't end in time is given back.
//   - A handler that fails, panics or kills the process uses up its own
//     attempts and ends among the dead letters; the others go on.
//
// In a cluster the data are in partitions, and each has its own lease, claims and
// sweeps; all share the pool that runs what was claimed. One subscription a server
// hears for the partitions that it holds, and follows them when they move.
//
// Every part is a goroutine that Run owns and waits for. Intake (listening,
// claiming, sweeping) ends with Run's context; work (handlers, settling,
// heartbeats) ends after the drain.
package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

// Notifications says how to get Redis's keyspace events.
type Notifications string

// The choices.
const (
	// Auto sets the flags that are missing if Redis lets it, else warns and
	// goes on without events: bare jobs are then found by the sweep alone.
	Auto Notifications = "auto"
	// Require makes Run fail if events can't be had.
	Require Notifications = "require"
	// Off asks for no events.
	Off Notifications = "off"
)

// Config is how an engine behaves. The zero value is right for most.
type Config struct {
	// Concurrency bounds the handlers that run at a time. Zero means 64.
	Concurrency int
	// Lease is how long after a node's death its runs are claimed by others at
	// the latest. Zero means 15 s. A heartbeat every fifth of it renews what
	// holds for two thirds of it; the rest is for others to notice.
	Lease time.Duration
	// ShutdownGrace is how long handlers may go on once Run's context ends.
	// Zero means 25 s; negative means none.
	ShutdownGrace time.Duration
	// MaxPayload is the longest payload that is run, in bytes. Zero means 1 MiB.
	MaxPayload int
	// IDPrefix is what a key must begin with to be a job. Empty means any.
	IDPrefix string
	// Notifications is empty for Auto.
	Notifications Notifications
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
	// Version is what the node tells others that it runs.
	Version string
	// Observer is told what happens. All of its functions may be nil.
	Observer Observer
}

// Observer is told what an engine does. Its functions are called by the
// engine's own goroutines, which wait for them.
type Observer struct {
	// Ready is called once: the node hears events, or knows that it can't, and
	// has made its first claim. Of a cluster some partitions are enough after 10 s.
	Ready func()
	// Settled is called for each firing whose outcome is in Redis.
	Settled func(Firing)
	// Swept is called after each sweep that this node made.
	Swept func(Sweep)
	// Degraded is called when events stop coming, with the reason, and with ""
	// when they come again.
	Degraded func(reason string)
	// Claimed is called for each claim that took runs: how many, and how long Redis
	// took to answer.
	Claimed func(runs int, took time.Duration)
	// Wrote is called for each group of outcomes that was written, likewise.
	Wrote func(outcomes int, took time.Duration)
	// Heard is called for each event. It holds up the next one.
	Heard func()
	// Gap is called for each subscription that broke: what came meanwhile was missed,
	// and is looked for.
	Gap func()
	// Canary is called when the node's own event came: how long after the heartbeat
	// that caused it.
	Canary func(took time.Duration)
	// Failed is called for each call of Redis that failed, with what it was for.
	Failed func(doing string, err error)
}

// Causes with which a handler's context ends; see context.Cause.
var (
	ErrShutdown  = errors.New("the node shuts down")
	ErrLeaseLost = errors.New("the node's lease was lost: another node may run the job")
	ErrTimeout   = errors.New("the task's timeout is over")
)

// Engine runs jobs. Make it with New.
type Engine struct {
	cfg      Config
	log      *slog.Logger
	space    *wire.Space
	parts    []*partition
	pool     *pool
	tasks    []string
	started  time.Time
	refuse   context.CancelCauseFunc // ends the intake for good
	remap    hint                    // a reason to ask which server holds which partition
	deaf     deafness
	troubles troubles
	ready    readiness
}

// callLimit is how long a call may take before it is made again, which loses nothing:
// a frozen server must not hold up what others do, nor a shutdown.
const callLimit = 2 * time.Second

// New makes an engine for the tasks of a registry, which must not change any
// more. rdb stays the caller's to close; for a cluster it is a
// *redis.ClusterClient. Give it ContextTimeoutEnabled, or a frozen Redis is noticed
// late. Errors are mistakes in cfg.
func New(rdb redis.UniversalClient, reg *registry.Registry, cfg Config) (*Engine, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	space, err := wire.NewSpace(rdb)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, log: cfg.Logger, space: space.Within(callLimit), tasks: reg.Names(), remap: newHint()}
	e.pool = newPool(cfg.Concurrency, reg)
	e.troubles.log = cfg.Logger
	name := strings.ToLower(rand.Text()[:10])
	for _, store := range space.All() {
		e.parts = append(e.parts, newPartition(e, store, name))
	}
	return e, nil
}

func (cfg Config) complete() (Config, error) {
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 64)
	cfg.Lease = cmp.Or(cfg.Lease, 15*time.Second)
	cfg.ShutdownGrace = cmp.Or(cfg.ShutdownGrace, 25*time.Second)
	cfg.MaxPayload = cmp.Or(cfg.MaxPayload, 1<<20)
	cfg.Notifications = cmp.Or(cfg.Notifications, Auto)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	switch {
	case cfg.Concurrency < 1:
		return cfg, fmt.Errorf("engine: concurrency is %d, want at least 1", cfg.Concurrency)
	case cfg.Lease < time.Second:
		return cfg, fmt.Errorf("engine: lease is %s, want at least 1s", cfg.Lease)
	case cfg.MaxPayload < 0:
		return cfg, fmt.Errorf("engine: payload limit is %d bytes, want a positive number", cfg.MaxPayload)
	case cfg.Notifications != Auto && cfg.Notifications != Require && cfg.Notifications != Off:
		return cfg, fmt.Errorf("engine: notifications %q, want auto, require or off", cfg.Notifications)
	}
	return cfg, nil
}

// Run runs jobs until ctx ends, then drains: no new claims, handlers get the
// shutdown grace, what is left is given back. It returns nil after that, and an
// error only if it can't work: the data are of another format (client.ErrFormat), or
// notifications are required and can't be had when it starts. A Redis that is away
// or refuses is waited for, and said in the log. Run may be called once.
func (e *Engine) Run(ctx context.Context) error {
	e.started = time.Now()
	intake, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	e.refuse = refuse
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	alive, stopBeating := context.WithCancel(work)
	defer stopBeating()

	defer time.AfterFunc(readyPatience, func() { e.ready.hurry(e) }).Stop()
	var beating, settling, taking sync.WaitGroup
	taking.Go(func() { e.listenLoop(intake) })
	for _, p := range e.parts {
		defer p.node.stop()
		taking.Go(func() {
			if err := p.start(intake); err != nil {
				refuse(err) // if it is for the end of the intake, this changes nothing
				return
			}
			beating.Go(func() { p.beatLoop(alive) })
			beating.Go(func() { p.leaseLoop(alive) })
			settling.Go(func() { p.out.loop(work) })
			p.take(intake)
		})
	}
	taking.Wait()
	e.drain()
	for _, p := range e.parts {
		p.out.finish()
	}
	defer time.AfterFunc(settleGrace, stopWork).Stop()
	settling.Wait()
	stopBeating()
	beating.Wait()
	if ctx.Err() == nil {
		return context.Cause(intake)
	}
	e.log.Info("stopped")
	return nil
}
