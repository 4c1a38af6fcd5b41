package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// world is a Redis, a client of it, and a node that claims when a test wants it.
type world struct {
	*testing.T
	c     *client.Client
	rdb   redis.UniversalClient
	space *wire.Space // the node's
	seq   int64
}

// suite is what must hold on every Redis.
var suite = slices.Concat(scheduleChecks, changeChecks, listChecks, deadChecks, thresholdChecks, hitChecks)

type check struct {
	name string
	test func(w *world)
}

func TestBubble(t *testing.T) {
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) { bubble(t, c.test) })
	}
}

func TestRedis(t *testing.T) {
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(newWorld(t, redistest.Start(t).Client(t)))
		})
	}
}

// TestCluster has one cluster for all checks, which come one after the other: to
// start one takes seconds.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			rdb := cluster.Client(t)
			flush := func(ctx context.Context, master *redis.Client) error { return master.FlushAll(ctx).Err() }
			if err := rdb.ForEachMaster(t.Context(), flush); err != nil {
				t.Fatal(err)
			}
			c.test(newWorld(t, rdb))
		})
	}
}

func bubble(t *testing.T, test func(w *world)) {
	redistest.InBubble(t, func(t *testing.T, b *redistest.Bubble) { test(newWorld(t, b.Client(t))) })
}

func newWorld(t *testing.T, rdb redis.UniversalClient) *world {
	t.Helper()
	w := &world{T: t, rdb: rdb}
	w.c = w.client(client.Config{})
	var err error
	if w.space, err = wire.NewSpace(rdb); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) client(cfg client.Config) *client.Client {
	w.Helper()
	c, err := client.New(w.rdb, cfg)
	return must(c, err)(w)
}

// must is the value of a call that may not fail.
func must[T any](v T, err error) func(w *world) T {
	return func(w *world) T {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
		return v
	}
}

func equal[T any](w *world, what string, got, want T) {
	w.Helper()
	if g, x := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != x {
		w.Errorf("%s: got %s, want %s", what, g, x)
	}
}

func (w *world) now() time.Time {
	w.Helper()
	return must(w.rdb.Time(w.Context()).Result())(w)
}

func (w *world) schedule(spec client.Spec) client.Scheduled {
	w.Helper()
	return must(w.c.Schedule(w.Context(), spec))(w)
}

// many schedules jobs of a task, an hour ahead, a second apart.
func (w *world) many(task string, ids ...string) {
	w.Helper()
	start := w.now().Add(time.Hour)
	for i, id := range ids {
		w.schedule(client.Spec{ID: id, Task: task, At: start.Add(time.Duration(i) * time.Second)})
	}
}

// numbered are n ids with a prefix, in order.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return ids
}

// fuse and class are an id's keys.
func (w *world) fuse(id string) string  { return w.space.Of(id).Fuse(id) }
func (w *world) class(id string) string { return w.space.Of(id).Class(id) }

// claim makes a node take what is due of a task, in the order of its ids.
func (w *world) claim(task string) []wire.Run {
	w.Helper()
	ctx := w.Context()
	w.seq++
	var runs []wire.Run
	for _, store := range w.space.All() {
		node := fmt.Sprint("n-", store.Partition()) // its runs' ids begin with it
		must(store.Beat(ctx, wire.Pulse{Node: node, First: true, Lease: time.Hour, Info: `{"Host":"h","PID":7,"Tasks":["mail"]}`}))(w)
		runs = append(runs, must(store.Claim(ctx, wire.ClaimRequest{
			Node: node, Seq: w.seq, Runs: 500, Bytes: 1 << 20, MaxPayload: 1 << 20, Tasks: []wire.Want{{Task: task, Runs: 500}},
		}))(w).Runs...)
	}
	slices.SortStableFunc(runs, func(a, b wire.Run) int { return strings.Compare(a.ID, b.ID) })
	return runs
}

// in brings new jobs into a state.
func (w *world) in(state client.State, task string, ids ...string) []wire.Run {
	w.Helper()
	for _, id := range ids {
		w.schedule(client.Spec{ID: id, Task: task, Payload: []byte("of " + id)})
	}
	if state == client.Pending {
		return nil
	}
	runs := w.claim(task)
	if len(runs) != len(ids) {
		w.Fatalf("claimed %d runs, want %d", len(runs), len(ids))
	}
	for _, run := range runs {
		failure := wire.Failure{Run: run, Verdict: wire.Retry, Delay: time.Hour, Error: "why"}
		if state == client.Dead {
			failure.Verdict = wire.Bury
		}
		if state != client.Running {
			must(w.space.Of(run.ID).Fail(w.Context(), task, []wire.Failure{failure}))(w)
		}
	}
	return runs
}

// failing is a Redis that stops answering after so many commands.
type failing struct {
	left atomic.Int64
	err  error
}

func newFailing(after int64, err error) *failing {
	f := &failing{err: err}
	f.left.Store(after)
	return f
}

func (*failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.left.Add(-1) < 0 {
			for _, cmd := range cmds {
				cmd.SetErr(f.err)
			}
			return f.err
		}
		return next(ctx, cmds)
	}
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.left.Add(-1) < 0 {
			cmd.SetErr(f.err)
			return f.err
		}
		return next(ctx, cmd)
	}
}

// before calls something before each command that has an argument, and fails the command
// with its error, if there is one.
type before struct {
	arg  string
	call func() error
	then func() // when it was answered; may be nil
	off  atomic.Bool
}

func newBefore(arg string, call func() error) *before { return &before{arg: arg, call: call} }

func (*before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.off.Load() || !slices.Contains(cmd.Args(), any(b.arg)) {
			return next(ctx, cmd)
		}
		if err := b.call(); err != nil {
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if b.then != nil {
			b.then()
		}
		return err
	}
}

// after calls something after each command on a key.
type after struct {
	name, key string
	call      func()
}

func (*after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == a.name && cmd.Args()[1] == a.key {
			a.call()
		}
		return err
	}
}
