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
// Every part is a goroutine that Run owns and waits for. Intake (listening,
// claiming, sweeping) ends with Run's context; work (handlers, settling,
// heartbeats) ends after the drain.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
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
	// has made its first claim.
	Ready func()
	// Settled is called for each firing whose outcome is in Redis.
	Settled func(Firing)
	// Swept is called after each sweep that this node made.
	Swept func(Sweep)
	// Degraded is called when events stop coming, with the reason, and with ""
	// when they come again.
	Degraded func(reason string)
}

// Causes with which a handler's context ends; see context.Cause.
var (
	ErrShutdown  = errors.New("the node shuts down")
	ErrLeaseLost = errors.New("the node's lease was lost: another node may run the job")
	ErrTimeout   = errors.New("the task's timeout is over")
)

// Engine runs jobs. Make it with New.
type Engine struct {
	cfg   Config
	log   *slog.Logger
	store *wire.Store
	node  *node
	inbox *inbox
	pool  *pool
	out   *settler
	look  hint // a reason to claim

	counters *counters

	backlog backlog
	tasks   []string

	started  time.Time
	swept    *sweepRequests
	live     liveness
	troubles troubles
	offset   atomic.Int64 // Redis's clock minus this machine's, in ns
	nodes    atomic.Int64 // that hold a lease
	ready    readiness
	unsure   bool // after the intake: the node may hold runs that it never heard of
}

// New makes an engine for the tasks of a registry, which must not change any
// more. rdb stays the caller's to close. Errors are mistakes in cfg.
func New(rdb redis.UniversalClient, reg *registry.Registry, cfg Config) (*Engine, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	store, err := wire.NewStore(rdb, wire.DBOf(rdb))
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, log: cfg.Logger, store: store, tasks: reg.Names(),
		inbox: newInbox(), counters: newCounters(), look: newHint(), swept: newSweepRequests(),
	}
	e.node = newNode()
	e.live.tell = e.tellDegraded
	e.troubles.log = cfg.Logger
	e.out = newSettler(e)
	e.pool = newPool(cfg.Concurrency, reg, e.run, e.look.give)
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
// error only if it could not start: the data are of another format, or
// notifications are required and can't be had. A Redis that is away or refuses
// is waited for, and said in the log. Run may be called once.
func (e *Engine) Run(ctx context.Context) error {
	e.started = time.Now()
	if err := e.start(ctx); err != nil {
		return err
	}
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	defer e.node.stop()
	var beating, settling, taking sync.WaitGroup
	alive, stopBeating := context.WithCancel(work)
	defer stopBeating()
	beating.Go(func() { e.beatLoop(alive) })
	beating.Go(func() { e.leaseLoop(alive) })
	settling.Go(func() { e.out.loop(work) })

	taking.Go(func() { e.listenLoop(ctx) })
	taking.Go(func() { e.adoptLoop(ctx) })
	taking.Go(func() { e.countLoop(ctx) })
	taking.Go(func() { e.claimLoop(ctx) })
	taking.Go(func() { e.sweepLoop(ctx) })

	<-ctx.Done()
	taking.Wait()
	e.drain()
	e.out.finish()
	defer time.AfterFunc(settleGrace, stopWork).Stop()
	settling.Wait()
	stopBeating()
	beating.Wait()
	e.log.Info("stopped")
	return nil
}

// start waits for a Redis that answers, and takes the node's first lease.
func (e *Engine) start(ctx context.Context) error {
	err := retry(ctx, func() error {
		err := e.store.CheckFormat(ctx)
		if err == nil {
			err = e.beat(ctx)
		}
		if err == nil {
			err = e.loadThresholds(ctx)
		}
		if errors.Is(err, wire.ErrNewerFormat) {
			return final(err)
		}
		e.troubles.note("start", err)
		return err
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if e.cfg.Notifications == Require && ctx.Err() == nil {
		if _, err := e.ensureFlags(ctx); err != nil {
			return fmt.Errorf("keyspace notifications are required: %w", err)
		}
	}
	return nil
}

// redisNow is the time by Redis's clock, as far as this node knows it.
func (e *Engine) redisNow() time.Time {
	return time.Now().Add(time.Duration(e.offset.Load()))
}

// noteClock learns Redis's clock from an answer that was asked for at sent.
func (e *Engine) noteClock(sent, redisTime time.Time) {
	middle := sent.Add(time.Since(sent) / 2)
	e.offset.Store(int64(redisTime.Sub(middle)))
}
