package wire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// world is a Redis and what a test does with it: in a bubble, where time passes
// only when a test lets it, or a real one, where the same must hold in ms.
type world struct {
	*testing.T
	s    *wire.Store
	rdb  *redis.Client // as any client would use it
	span time.Duration // a while
	real bool

	token int64
	seq   map[string]int64
}

// bubble is a world on the embedded Redis in fake time. With again, every script
// is executed twice in a row, and the test fails where the second time changes
// anything.
func bubble(t *testing.T, again bool, test func(w *world)) {
	redistest.InBubble(t, func(t *testing.T, b *redistest.Bubble) {
		w := newWorld(t, b.Client(t), b.Client(t))
		w.span = 20 * time.Second
		if again {
			w.s.Redis().AddHook(twice{w})
		}
		test(w)
	})
}

func onRedis(t *testing.T, test func(w *world)) {
	server := redistest.Start(t)
	w := newWorld(t, server.Client(t), server.Client(t))
	w.span, w.real = 80*time.Millisecond, true
	test(w)
}

func newWorld(t *testing.T, store, raw *redis.Client) *world {
	t.Helper()
	s, err := wire.NewStore(store, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, s: s, rdb: raw, seq: make(map[string]int64)}
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

// until lets time pass until Redis's clock has reached a moment.
func (w *world) until(at time.Time) {
	w.Helper()
	if !w.real {
		time.Sleep(time.Until(at))
		return
	}
	for w.now().Before(at) { // each look is a round trip
	}
}

func (w *world) pass(d time.Duration) {
	w.Helper()
	w.until(w.now().Add(d))
}

// set sets a key as any client would. A ttl of 0 means none.
func (w *world) set(key, value string, ttl time.Duration) {
	w.Helper()
	must(w.rdb.Set(w.Context(), key, value, ttl).Result())(w)
}

func (w *world) del(keys ...string) {
	w.Helper()
	must(w.rdb.Del(w.Context(), keys...).Result())(w)
}

// job is a job that is due so long from now.
func job(id, task string, in time.Duration) wire.ArmJob {
	return wire.ArmJob{ID: id, Task: task, Payload: []byte("of " + id), When: wire.When{In: in}}
}

func (w *world) arm(mode wire.IfExists, jobs ...wire.ArmJob) []wire.ArmResult {
	w.Helper()
	w.token++
	results, _, err := w.s.Arm(w.Context(), mode, w.token, jobs)
	return must(results, err)(w)
}

// armNew arms jobs that must be new.
func (w *world) armNew(jobs ...wire.ArmJob) {
	w.Helper()
	for i, r := range w.arm(wire.Fail, jobs...) {
		if r.Outcome != wire.ArmedNew {
			w.Fatalf("arming %q: outcome %d", jobs[i].ID, r.Outcome)
		}
	}
}

// lease is longer than any test lasts, unless it lets a node die.
const lease = time.Hour

func (w *world) beat(node string) wire.Heartbeat {
	w.Helper()
	_, seen := w.seq[node]
	w.seq[node] += 0 // seen from now on
	return must(w.s.Beat(w.Context(), wire.Pulse{Node: node, First: !seen, Lease: lease, Info: "{}"}))(w)
}

// wants is a request for up to n runs of each task.
func (w *world) wants(node string, n int, tasks ...string) wire.ClaimRequest {
	if _, seen := w.seq[node]; !seen {
		w.beat(node)
	}
	w.seq[node]++
	req := wire.ClaimRequest{Node: node, Seq: w.seq[node], Runs: n, Bytes: 1 << 20, MaxPayload: 1 << 20}
	for _, task := range tasks {
		req.Tasks = append(req.Tasks, wire.Want{Task: task, Runs: n})
	}
	return req
}

func (w *world) claim(req wire.ClaimRequest) wire.Claimed {
	w.Helper()
	return must(w.s.Claim(w.Context(), req))(w)
}

// take claims all that is due of some tasks.
func (w *world) take(node string, tasks ...string) []wire.Run {
	w.Helper()
	return w.claim(w.wants(node, 200, tasks...)).Runs
}

// takeOne claims the one run that must be due.
func (w *world) takeOne(node, task string) wire.Run {
	w.Helper()
	runs := w.take(node, task)
	if len(runs) != 1 {
		w.Fatalf("%s took %v, want one run", node, ids(runs))
	}
	return runs[0]
}

func (w *world) done(runs ...wire.Run) []int {
	w.Helper()
	return must(w.s.Done(w.Context(), runs[0].Task, runs))(w)
}

func (w *world) fail(f ...wire.Failure) []int {
	w.Helper()
	return must(w.s.Fail(w.Context(), f[0].Run.Task, f))(w)
}

func (w *world) get(id string) wire.Holding {
	w.Helper()
	return must(w.s.Get(w.Context(), id))(w)[0]
}

// states are the states of an id's runs, sorted.
func (w *world) states(id string) string {
	w.Helper()
	var states []string
	for _, run := range w.get(id).Runs {
		states = append(states, string(run.State))
	}
	slices.Sort(states)
	return strings.Join(states, " ")
}

func (w *world) counts(task string) wire.Count {
	w.Helper()
	for _, c := range must(w.s.Counts(w.Context()))(w) {
		if c.Task == task {
			return c
		}
	}
	return wire.Count{}
}

// kill lets a node's lease run out, and returns whom another node is then told
// to reap.
func (w *world) kill(node, other string) []string {
	w.Helper()
	must(w.s.Beat(w.Context(), wire.Pulse{Node: node, Lease: time.Millisecond}))(w)
	w.pass(3 * time.Millisecond)
	return w.beat(other).Gone
}

func ids(runs []wire.Run) []string {
	out := make([]string, len(runs))
	for i, run := range runs {
		out[i] = run.ID
	}
	return out
}

// dump is all that Redis holds, a line a key.
func (w *world) dump() string {
	w.Helper()
	ctx := w.Context()
	keys := must(w.rdb.Keys(ctx, "*").Result())(w)
	slices.Sort(keys)
	var text strings.Builder
	for _, key := range keys {
		var value any
		switch kind := must(w.rdb.Type(ctx, key).Result())(w); kind {
		case "string":
			value = must(w.rdb.Get(ctx, key).Result())(w)
		case "hash":
			value = must(w.rdb.HGetAll(ctx, key).Result())(w) // printed in order
		case "set":
			members := must(w.rdb.SMembers(ctx, key).Result())(w)
			slices.Sort(members)
			value = members
		case "zset":
			value = fmt.Sprint(must(w.rdb.ZRangeWithScores(ctx, key, 0, -1).Result())(w))
		case "list":
			value = must(w.rdb.LRange(ctx, key, 0, -1).Result())(w)
		case "none": // expired since
			continue
		default:
			w.Fatalf("key %q has type %s", key, kind)
		}
		fmt.Fprintf(&text, "%q %d %q\n", key, must(w.rdb.PExpireTime(ctx, key).Result())(w), value)
	}
	return text.String()
}

// changes are the lines that are only in one of two dumps.
func changes(before, after string) string {
	var text strings.Builder
	for _, side := range []struct{ mark, has, misses string }{{"-", before, after}, {"+", after, before}} {
		for line := range strings.Lines(side.has) {
			if !strings.Contains(side.misses, line) {
				text.WriteString(side.mark + line)
			}
		}
	}
	return text.String()
}

// twice executes every script twice and compares what Redis holds after both.
type twice struct{ w *world }

func (twice) DialHook(next redis.DialHook) redis.DialHook { return next }

func (twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil || !strings.HasPrefix(cmd.Name(), "eval") {
			return err
		}
		once := h.w.dump()
		if err := next(ctx, redis.NewCmd(ctx, cmd.Args()...)); err != nil {
			h.w.Errorf("the second time: %v", err)
		}
		if changed := changes(once, h.w.dump()); changed != "" {
			_, args, _ := strings.Cut(fmt.Sprint(cmd.Args()), " 1 keyfuse: ")
			h.w.Errorf("repeating a script with %.100q changed\n%.2000s", args, changed)
		}
		return nil
	}
}

// before calls something before each command.
type before struct{ call func() }

func (before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b.call()
		return next(ctx, cmd)
	}
}
