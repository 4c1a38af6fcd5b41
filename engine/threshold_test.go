package engine_test

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// thresholds is what must hold of thresholds on every Redis.
var thresholds = []struct {
	name string
	test func(w *world)
}{
	{"the hit that reaches the threshold fires, with its count", hitsFire},
	{"a window that ends first fires with the count that it has", windowFires},
	{"a window that ended while no node was there fires with its count", windowFiresLater},
	{"INCR by any client opens a window and fires, with nothing else set", incrFires},
	{"INCR while no node was there counts", incrBeforeStart},
	{"INCR of keys that a pattern matches counts for each", patternsCount},
	{"INCR of keys without a threshold is of no concern", foreignCounters},
	{"a threshold that is defined while a node runs is heard of", definedLater},
	{"without events the check finds what was counted", countedWithoutEvents},
	{"an application that does it all by itself needs no definition", plainRecipe},
	{"an application's own EXPIRE of a counter ends no window and loses no hit", ownTTL},
	{"many nodes, one firing a crossing, and the counts add up", oneFiringACrossing},
}

func TestThresholdsInBubble(t *testing.T) {
	for _, s := range thresholds {
		t.Run(s.name, func(t *testing.T) { inBubble(t, s.test) })
	}
}

func TestThresholdsOnRedis(t *testing.T) {
	for _, s := range thresholds {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			onRedis(t, s.test)
		})
	}
}

func (w *world) define(t client.Threshold) {
	w.Helper()
	if _, err := w.jobs.DefineThreshold(w.Context(), t); err != nil {
		w.Fatal(err)
	}
}

func (w *world) hit(id string, by int64) client.Counted {
	w.Helper()
	counted, err := w.jobs.Hit(w.Context(), client.Hit{ID: id, By: by})
	if err != nil {
		w.Fatal(err)
	}
	return counted
}

// incr counts as any client would, and returns what it is told.
func (w *world) incr(id string) int64 {
	w.Helper()
	n, err := w.rdb.Incr(w.Context(), w.fuse(id)).Result()
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// until waits until something holds.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	for end := time.Now().Add(w.patience()); !holds(); {
		if time.Now().After(end) {
			w.Fatalf("waited in vain for %s", what)
		}
		if !w.real {
			time.Sleep(w.span / 10) // of the bubble's time; on a real one each look is a round trip
		}
	}
}

// far is a window that no test waits for.
const far = 24 * time.Hour

func check(f engine.Firing, id string, reason registry.Reason, count int64) string {
	if f.Job.ID != id || f.Job.Reason != reason || f.Job.Count != count || f.Outcome != engine.Done || f.Late < 0 {
		return "fired " + f.Job.ID + " " + string(f.Job.Reason) + " " + strconv.FormatInt(f.Job.Count, 10) + " " + string(f.Outcome) + " late " + f.Late.String()
	}
	return ""
}

// firedFor waits for a firing of a window.
func (n *node) firedFor(id string, reason registry.Reason, count int64) engine.Firing {
	n.w.Helper()
	f := n.fired()
	if wrong := check(f, id, reason, count); wrong != "" {
		n.w.Errorf("%s, want %s %s %d", wrong, id, reason, count)
	}
	return f
}

func mailNode(w *world, cfg engine.Config) *node {
	w.Helper()
	return w.start(tasks(map[string]registry.Func{"mail": nop}), cfg)
}

func hitsFire(w *world) {
	n := mailNode(w, engine.Config{})
	w.define(client.Threshold{ID: "c", Task: "mail", Payload: []byte("p"), Count: 3, Within: far})
	w.hit("c", 1)
	w.hit("c", 1)
	if c := w.hit("c", 1); !c.Fired {
		w.Errorf("counted %+v", c)
	}
	f := n.firedFor("c", registry.ReasonThreshold, 3)
	if f.Source != "threshold" || string(f.Job.Payload) != "p" || f.Job.Attempt != 1 {
		w.Errorf("fired %+v", f)
	}
	w.hit("c", 7)
	n.firedFor("c", registry.ReasonThreshold, 7)
}

func windowFires(w *world) {
	n := mailNode(w, engine.Config{})
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 100, Within: 8 * w.span})
	w.define(client.Threshold{ID: "quiet", Task: "mail", Count: 100, Within: 8 * w.span, OnTimeout: client.TimeoutDrops})
	w.hit("quiet", 5)
	ends := w.hit("c", 2).Ends
	w.incr("c")
	f := n.firedFor("c", registry.ReasonTimeout, 3)
	if !f.Job.Due.Equal(ends) {
		w.Errorf("due %s, want %s", f.Job.Due, ends)
	}
	n.firedNothing(w.span)
	for _, id := range []string{"c", "quiet"} {
		if left := w.left(w.fuse(id), w.class(id), w.names(id).Of("windows")); left != 0 {
			w.Errorf("%d keys of %s are left", left, id)
		}
	}
}

func windowFiresLater(w *world) {
	n := mailNode(w, engine.Config{})
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 100, Within: w.span})
	ends := w.hit("c", 2).Ends
	n.stop()
	for range 3 {
		w.incr("c")
	}
	w.until("the window's end", func() bool { return !w.rdb.Time(w.Context()).Val().Before(ends) })
	w.incr("c")
	mailNode(w, engine.Config{}).firedFor("c", registry.ReasonTimeout, 6)
}

func incrFires(w *world) {
	n := mailNode(w, engine.Config{})
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 3, Within: far})
	w.incr("c")
	w.incr("c")
	w.until("the node to see it", func() bool { return w.windowOf("c") != nil })
	ttl, class := w.rdb.PTTL(w.Context(), w.fuse("c")).Val(), w.rdb.Get(w.Context(), w.class("c")).Val()
	if ttl <= 0 || class != "mail" {
		w.Errorf("TTL %s, class %q", ttl, class)
	}
	w.incr("c")
	n.firedFor("c", registry.ReasonThreshold, 3)
	if err := w.rdb.IncrBy(w.Context(), w.fuse("c"), 8).Err(); err != nil {
		w.Fatal(err)
	}
	n.firedFor("c", registry.ReasonThreshold, 8)
}

// windowOf is the open window of a counter, nil if there is none.
func (w *world) windowOf(id string) *client.Window {
	w.Helper()
	jobs, err := w.jobs.Get(w.Context(), id)
	if err != nil || len(jobs) == 0 {
		return nil
	}
	return jobs[0].Window
}

func incrBeforeStart(w *world) {
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 3, Within: far})
	w.define(client.Threshold{ID: "user:*", Task: "mail", Count: 2, Within: far})
	for _, id := range []string{"c", "c", "c", "c", "user:1", "user:1"} {
		w.incr(id)
	}
	n := mailNode(w, engine.Config{})
	got := []string{check(n.fired(), "", "", 0), check(n.fired(), "", "", 0)}
	for _, want := range []string{"fired c threshold 4 done", "fired user:1 threshold 2 done"} {
		if !slices.ContainsFunc(got, func(s string) bool { return len(s) > len(want) && s[:len(want)] == want }) {
			w.Errorf("%q, want %q", got, want)
		}
	}
}

func patternsCount(w *world) {
	n := mailNode(w, engine.Config{})
	w.define(client.Threshold{ID: "user:*", Task: "mail", Count: 2, Within: far})
	w.incr("user:1")
	w.incr("user:2")
	w.incr("user:2")
	n.firedFor("user:2", registry.ReasonThreshold, 2)
	w.incr("user:1")
	n.firedFor("user:1", registry.ReasonThreshold, 2)
}

func foreignCounters(w *world) {
	n := mailNode(w, engine.Config{IDPrefix: ""})
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 1, Within: far})
	foreign := []string{w.fuse("other"), w.names("c").Of("x"), w.class("x"), "untagged"}
	for _, key := range foreign {
		w.rdb.Incr(w.Context(), key)
	}
	w.incr("c")
	n.firedFor("c", registry.ReasonThreshold, 1)
	for _, key := range foreign {
		if ttl := w.rdb.PTTL(w.Context(), key).Val(); ttl != -1 {
			w.Errorf("%s has TTL %s", key, ttl)
		}
	}
}

func definedLater(w *world) {
	n := mailNode(w, engine.Config{})
	before := w.flags("c")
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 1, Within: far})
	for range 2 { // the first may come before the node listens, and is found by the check
		w.incr("c")
		n.firedFor("c", registry.ReasonThreshold, 1)
	}
	if got := w.flags("c"); len(got) != len(before)+1 {
		w.Errorf("flags %q, were %q", got, before)
	}
	if err := w.jobs.RemoveThreshold(w.Context(), "c"); err != nil {
		w.Fatal(err)
	}
	if w.real { // the embedded one does not say which process it is
		w.until("the flag to be taken back", func() bool { return w.flags("c") == before })
	}
	w.incr("c")
	n.firedNothing(w.span / 10)
}

func countedWithoutEvents(w *world) {
	n := mailNode(w, engine.Config{Notifications: engine.Off})
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 2, Within: far})
	w.incr("c")
	w.incr("c")
	n.firedFor("c", registry.ReasonThreshold, 2)
	if w.real {
		return // it takes a minute
	}
	w.define(client.Threshold{ID: "user:*", Task: "mail", Count: 2, Within: far})
	w.incr("user:1")
	w.incr("user:1")
	n.firedFor("user:1", registry.ReasonThreshold, 2)
}

func plainRecipe(w *world) {
	n := mailNode(w, engine.Config{})
	w.incr("c")
	if err := w.rdb.PExpire(w.Context(), w.fuse("c"), w.span).Err(); err != nil {
		w.Fatal(err)
	}
	w.set(w.class("c"), "mail payload", 0)
	w.incr("c")
	f := n.firedFor("c", registry.ReasonTimer, 0)
	if string(f.Job.Payload) != "payload" {
		w.Errorf("payload %q", f.Job.Payload)
	}
}

func ownTTL(w *world) {
	n := mailNode(w, engine.Config{})
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 9, Within: 10 * w.span})
	ends := w.hit("c", 4).Ends
	w.incr("c")
	if err := w.rdb.PExpire(w.Context(), w.fuse("c"), 5*w.span).Err(); err != nil {
		w.Fatal(err)
	}
	w.until("the node to set it back", func() bool { return w.rdb.PTTL(w.Context(), w.fuse("c")).Val() > 10*w.span })
	if f := n.firedFor("c", registry.ReasonTimeout, 5); !f.Job.Due.Equal(ends) {
		w.Errorf("due %s, want %s", f.Job.Due, ends)
	}
}

func oneFiringACrossing(w *world) {
	nodes := make([]*node, 3)
	w.define(client.Threshold{ID: "c", Task: "mail", Count: 10, Within: far})
	for i := range nodes {
		nodes[i] = mailNode(w, engine.Config{Lease: calm})
	}
	const own, bare = 150, 50
	for range own {
		w.hit("c", 1)
	}
	for range bare {
		w.incr("c")
	}
	w.hit("c", 9) // whatever is open is full now, or this is
	total := int64(0)
	w.until("all to fire", func() bool {
		for _, n := range nodes {
			for len(n.firings) > 0 {
				f := <-n.firings
				if f.Job.Count < 10 || f.Job.Reason != registry.ReasonThreshold {
					w.Errorf("fired %+v", f.Job)
				}
				total += f.Job.Count
			}
		}
		return total >= own+bare
	})
	if window := w.windowOf("c"); window != nil {
		total += window.Count
	}
	if total != own+bare+9 {
		w.Errorf("the counts add up to %d, want %d", total, own+bare+9)
	}
}

// TestCountersWithoutPermission: a user who may not hear of counters, or set the
// flags, has thresholds all the same.
func TestCountersWithoutPermission(t *testing.T) {
	for name, rules := range map[string][]any{
		"no channel": {"resetchannels", "&keyfuse:wake:0", "&__keyevent@0__:expired"},
		"no config":  {"-config|set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onRedis(t, func(w *world) {
				rdb := w.as("d", rules...)
				n := w.startOn(rdb, tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
				w.define(client.Threshold{ID: "c", Task: "mail", Count: 1, Within: far})
				w.incr("c")
				n.firedFor("c", registry.ReasonThreshold, 1)
				w.define(client.Threshold{ID: "d", Task: "mail", Count: 1, Within: far}) // it must not think now that it hears
				w.incr("d")
				n.firedFor("d", registry.ReasonThreshold, 1)
				w.schedule(client.Spec{ID: "timer", Task: "mail", In: w.span})
				n.firedFor("timer", registry.ReasonTimer, 0)
			})
		})
	}
}

// TestManyClientsFireEachCrossingOnce: whoever hits, and however many nodes
// listen, each crossing is one firing, of exactly the threshold.
func TestManyClientsFireEachCrossingOnce(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		const clients, each, threshold = 64, 100, 100
		w.define(client.Threshold{ID: "c", Task: "mail", Count: threshold, Within: far})
		nodes := []*node{mailNode(w, engine.Config{Lease: calm}), mailNode(w, engine.Config{Lease: calm})}
		var hitting sync.WaitGroup
		var fired atomic.Int64
		for range clients {
			jobs, err := client.New(w.open(), client.Config{})
			if err != nil {
				w.Fatal(err)
			}
			hitting.Go(func() {
				for range each {
					counted, err := jobs.Hit(w.Context(), client.Hit{ID: "c"})
					if err != nil {
						w.Error(err)
					}
					if counted.Fired {
						fired.Add(1)
					}
				}
			})
		}
		hitting.Wait()
		if n := fired.Load(); n != clients*each/threshold {
			w.Errorf("%d hits were told that they crossed the threshold, want %d", n, clients*each/threshold)
		}
		seen := make(map[string]bool)
		w.until("all to fire", func() bool {
			for _, n := range nodes {
				for len(n.firings) > 0 {
					f := <-n.firings
					if wrong := check(f, "c", registry.ReasonThreshold, threshold); wrong != "" || seen[f.Job.RunID] {
						w.Errorf("%s, run %s, seen %t", wrong, f.Job.RunID, seen[f.Job.RunID])
					}
					seen[f.Job.RunID] = true
				}
			}
			return len(seen) == clients*each/threshold
		})
		if window := w.windowOf("c"); window != nil {
			w.Errorf("left open: %+v", window)
		}
	})
}
