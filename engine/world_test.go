package engine_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

// world is a Redis and what a test does with it: in a bubble, where minutes pass
// in no time, or a real one, where the same must hold in milliseconds.
type world struct {
	*testing.T
	addr  string
	open  func() redis.UniversalClient
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	rdb   redis.UniversalClient
	space *wire.Space
	jobs  *client.Client
	span  time.Duration // a while
	lease time.Duration
	real  bool // no bubble
	user  user // as whom open connects; the default one if it is empty

	server *redistest.Server // nil unless it is one alone
}

func inBubble(t *testing.T, test func(w *world)) {
	redistest.InBubble(t, func(t *testing.T, b *redistest.Bubble) {
		w := &world{T: t, span: 20 * time.Second, lease: 15 * time.Second, dial: b.Dial}
		w.begin(redistest.BubbleAddr, test)
	})
}

func onRedis(t *testing.T, test func(w *world)) {
	onServer(t, redistest.Start(t), test)
}

func onServer(t *testing.T, server *redistest.Server, test func(w *world)) {
	w := &world{T: t, span: 100 * time.Millisecond, lease: time.Second, real: true, server: server}
	w.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	w.begin(server.Addr(), test)
}

func (w *world) begin(addr string, test func(w *world)) {
	w.addr = addr
	w.open = func() redis.UniversalClient { return w.clientVia(addr, w.dial) }
	w.connect(client.Config{})
	test(w)
}

// connect makes what a test itself uses.
func (w *world) connect(cfg client.Config) {
	w.Helper()
	w.rdb = w.open()
	var err error
	if w.space, err = wire.NewSpace(w.rdb); err != nil {
		w.Fatal(err)
	}
	if w.jobs, err = client.New(w.rdb, cfg); err != nil {
		w.Fatal(err)
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

func (w *world) clientVia(addr string, dial dialer) *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, Dialer: dial, ContextTimeoutEnabled: true, Username: w.user.name, Password: w.user.password,
		DialerRetries:            1, // a dial that waits to be made again outlives its client, and its bubble
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	w.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// node is an engine that runs.
type node struct {
	w        *world
	firings  chan engine.Firing
	sweeps   chan engine.Sweep
	degraded chan string
	link     *link  // how it reaches Redis, if a test may cut that
	stop     func() // drains and waits; may be called twice
}

// start runs an engine and waits until it is ready.
func (w *world) start(reg *registry.Registry, cfg engine.Config) *node {
	w.Helper()
	return w.startOn(w.open(), reg, cfg)
}

func (w *world) startOn(rdb redis.UniversalClient, reg *registry.Registry, cfg engine.Config) *node {
	w.Helper()
	n := &node{w: w, firings: make(chan engine.Firing, 100_000), sweeps: make(chan engine.Sweep, 10_000), degraded: make(chan string, 10_000)}
	ready := make(chan struct{})
	cfg.Observer.Ready = func() { close(ready) }
	cfg.Observer.Settled = func(f engine.Firing) { n.firings <- f }
	cfg.Observer.Swept = func(s engine.Sweep) { n.sweeps <- s }
	cfg.Observer.Degraded = func(why string) { n.degraded <- why }
	if cfg.Lease == 0 {
		cfg.Lease = w.lease
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(logWriter{w}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	e, err := engine.New(rdb, reg, cfg)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = e.Run(ctx) })
	n.stop = func() {
		w.Helper()
		cancel()
		running.Wait()
		if failed != nil {
			w.Errorf("Run: %v", failed)
		}
	}
	w.Cleanup(n.stop)
	await(w, ready, "the engine to be ready")
	return n
}

// logWriter shows a node's log with the test's.
type logWriter struct{ w *world }

func (l logWriter) Write(p []byte) (int, error) {
	return io.Discard.Write(p)
}

// patience is how long a test in a bubble waits for an event that must come: a
// second or so, since a node that waits has its heartbeats.
const patience = 2 * time.Hour

func (w *world) patience() time.Duration {
	if !w.real {
		return patience
	}
	return 20 * time.Second
}

// await waits for an event, and fails the test if it never comes.
func await[T any](w *world, events <-chan T, what string) T {
	w.Helper()
	timer := time.NewTimer(w.patience())
	defer timer.Stop()
	select {
	case event := <-events:
		return event
	case <-timer.C:
		w.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// fired waits for the next firing.
func (n *node) fired() engine.Firing {
	n.w.Helper()
	return await(n.w, n.firings, "a firing")
}

// sweptSome waits for a sweep that found something.
func (n *node) sweptSome() engine.Sweep {
	n.w.Helper()
	for {
		s := await(n.w, n.sweeps, "a sweep that finds something")
		if s != (engine.Sweep{Took: s.Took}) {
			return s
		}
	}
}

// firedNothing checks that nothing else has fired by the time that a job which
// is scheduled now, so long from now, does. The node must serve task "marker".
func (n *node) firedNothing(in time.Duration) {
	n.w.Helper()
	n.w.schedule(client.Spec{Task: "marker", In: in})
	if f := n.fired(); f.Job.Task != "marker" {
		n.w.Errorf("fired %+v, want nothing", f)
	}
}

func (w *world) schedule(spec client.Spec) client.Scheduled {
	w.Helper()
	s, err := w.jobs.Schedule(w.Context(), spec)
	if err != nil {
		w.Fatalf("schedule %+v: %v", spec, err)
	}
	return s
}

// set sets a key as any client would.
func (w *world) set(key, value string, ttl time.Duration) {
	w.Helper()
	if err := w.rdb.Set(w.Context(), key, value, ttl).Err(); err != nil {
		w.Fatal(err)
	}
}

// fuse and class are an id's keys.
func (w *world) fuse(id string) string  { return w.names(id).Fuse(id) }
func (w *world) class(id string) string { return w.names(id).Class(id) }

// names are those of the keys where an id is.
func (w *world) names(id string) wire.Names { return w.space.Of(id).Names }

// setBare sets a job as any client would.
func (w *world) setBare(id, class string, ttl time.Duration) {
	w.Helper()
	w.set(w.fuse(id), "x", ttl)
	w.set(w.class(id), class, 0)
}

// left is how many of some keys there are.
func (w *world) left(keys ...string) int {
	w.Helper()
	left := 0
	for _, key := range keys { // one by one: they may be in several slots
		n, err := w.rdb.Exists(w.Context(), key).Result()
		if err != nil {
			w.Fatal(err)
		}
		left += int(n)
	}
	return left
}

// servers does something on each server, or master of a cluster.
func (w *world) servers(do func(ctx context.Context, rdb *redis.Client) error) {
	w.Helper()
	var err error
	switch rdb := w.rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(w.Context(), do)
	case *redis.Client:
		err = do(w.Context(), rdb)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// setFlags sets notify-keyspace-events.
func (w *world) setFlags(flags string) {
	w.Helper()
	w.servers(func(ctx context.Context, rdb *redis.Client) error {
		return rdb.ConfigSet(ctx, "notify-keyspace-events", flags).Err()
	})
}

// flags are those of the server that holds an id.
func (w *world) flags(id string) string {
	w.Helper()
	server, err := w.space.Of(id).Server(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return server.ConfigGet(w.Context(), "notify-keyspace-events").Val()["notify-keyspace-events"]
}

// tasks makes a registry of a handler a name, with a task "marker" that does
// nothing.
func tasks(handlers map[string]registry.Func) *registry.Registry {
	reg := registry.New()
	for name, h := range handlers {
		reg.Register(name, h, registry.Options{})
	}
	if _, ok := reg.Lookup("marker"); !ok {
		reg.Register("marker", nop, registry.Options{})
	}
	return reg
}

var nop = registry.Func(func(context.Context, registry.Job) error { return nil })

// states are what is held of an id, in the form state:attempt.
func (w *world) states(id string) []client.State {
	w.Helper()
	jobs, err := w.jobs.Get(w.Context(), id)
	if err != nil {
		return nil
	}
	var states []client.State
	for _, job := range jobs {
		states = append(states, job.State)
	}
	return states
}
