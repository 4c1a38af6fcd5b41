package wire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// guardChecks are about what must not disturb the others: data that somebody else
// has written under Keyfuse's names, and calls that would take too long.
var guardChecks = []check{
	{"guard: of what others wrote under keyfuse: only its own window suffers", guardForeign},
	{"guard: after a reset by hand the next hits count from one", guardReset},
	{"guard: a counter that was set with a TTL of its own is another one", guardSetEX},
	{"guard: what came after a cancel by hand counts for the next window", guardCancelled},
	{"guard: a pattern never takes Keyfuse's own keys, nor ids that are too long", guardInternal},
	{"guard: there are no more patterns than can be compared", guardPatterns},
	{"guard: a call that would fire too much goes into several, and answers all", guardLong},
	{"guard: a definition of its own brings its payload to an open window", guardOwnPayload},
	{"guard: a look that is made again does not take back what fired before", guardLookAgain},
}

func guardForeign(w *world) {
	for name, write := range map[string][]any{
		"items":   {"RPUSH", "keyfuse:items:bad", "x"},
		"counts":  {"HSET", "keyfuse:counts", "bad", "abc"},
		"open":    {"HSET", "keyfuse:open", "b*d", "abc"},
		"firings": {"SET", "keyfuse:firings:b*d", "abc"},
		"window":  {"HSET", "keyfuse:windows", "bad", "1 1 x"},
		"huge":    {"HSET", "keyfuse:windows", "bad", strings.Repeat("9", 400) + " " + strings.Repeat("9", 400) + " counting 1 9 0 fire mail b*d"},
		"def":     {"HSET", "keyfuse:thresholds", "b*d", "garbage"},
		"payload": {"HSET", "keyfuse:payloads", "b*d", "9999999999999999999999 x"},
		"no def":  {"HDEL", "keyfuse:thresholds", "b*d"},
		"counter": {"SET", "bad", "x"},
		"class":   {"SET", "class:bad", "\x00 x"},
	} {
		must(w.rdb.FlushAll(w.Context()).Result())(w)
		clear(w.seq)
		for _, id := range []string{"b*d", "good"} {
			w.define(wire.Threshold{ID: id, Count: 30, Task: "t-" + strings.Trim(id, "*bd"), Within: 5 * w.span})
		}
		if name != "items" {
			w.hitAll(wire.Hit{ID: "bad", By: 1, Item: `"i"`}, wire.Hit{ID: "good", By: 1})
		}
		must(w.rdb.Do(w.Context(), write...).Result())(w)
		results := w.hitAll(wire.Hit{ID: "bad", By: 1, Item: `"j"`}, wire.Hit{ID: "good", By: 1})
		equal(w, name+": good", results[1].Outcome, wire.CountedIt)
		w.touch("bad", "good")
		w.armNew(job("timer", "early", 0))
		w.until(results[1].Ends)
		runs := w.take("n", "early", "t-", "t-goo", "mail")
		for _, want := range []string{"timer", "good"} {
			if !slices.Contains(ids(runs), want) {
				w.Errorf("%s: took %q, want %s too", name, ids(runs), want)
			}
		}
	}
}

func guardReset(w *world) {
	w.define(wire.Threshold{ID: "login:*", Count: 3, OnTimeout: wire.TimeoutDrops, Mode: wire.Once, Within: lease})
	for _, look := range []bool{true, false} {
		id := fmt.Sprint("login:", look)
		count := func() {
			if look {
				w.incr(id, 1)
				w.touch(id)
			} else {
				w.hit(id)
			}
		}
		count()
		w.del("class:"+id, id)
		count()
		count()
		equal(w, "below", w.fired("n", "mail"), "")
		count()
		equal(w, "fired", w.fired("n", "mail"), id+" threshold 3")
	}
}

func guardSetEX(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 100})
	w.hitBy("c", 10)
	w.set("c", "1", lease)
	w.touch("c")
	equal(w, "fired", w.fired("n", "mail"), "c timeout 10")
	equal(w, "goes on", w.windowOf("c").Count, 1)
}

func guardCancelled(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 100})
	last := w.hitBy("c", 4)
	w.del("class:c")
	w.incr("c", 3)
	w.until(last.Ends)
	equal(w, "fired", w.fired("n", "mail"), "")
	w.touch("c")
	equal(w, "the next", w.windowOf("c").Count, 3)
}

func guardInternal(w *world) {
	for _, pattern := range []string{"k*", "c*", "class*", "keyfuse*x"} {
		t := wire.Threshold{ID: pattern, Task: "mail", Count: 1, Within: lease}
		if _, err := t.Complete(lease); err == nil {
			w.Errorf("%q may be defined", pattern)
		}
	}
	w.define(wire.Threshold{ID: "x*", Count: 1})
	long := "x" + strings.Repeat("y", wire.MaxID)
	w.incr(long, 5)
	w.touch(long)
	equal(w, "fired", w.fired("n", "mail"), "")
	equal(w, "counter", must(w.rdb.Get(w.Context(), long).Result())(w), "5")
	equal(w, "hit", w.hit(long).Outcome, wire.NoDefinition)
}

func guardPatterns(w *world) {
	for i := range wire.MaxPatterns {
		w.define(wire.Threshold{ID: fmt.Sprintf("p%d:*", i), Count: 9})
	}
	more := must(wire.Threshold{ID: "more:*", Task: "mail", Count: 9, Within: lease}.Complete(lease))(w)
	outcome, _, err := w.s.Define(w.Context(), more)
	equal(w, "one more", must(outcome, err)(w), wire.RefusedMany)
	w.define(wire.Threshold{ID: "own", Count: 9})
	w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: "p0:*", Count: 8})
}

func guardLong(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 1, Payload: []byte(strings.Repeat("x", 40<<10)), Within: lease})
	w.define(wire.Threshold{ID: "d*", Count: 9, Within: lease})
	const n = 80
	all := hits()
	for i := range n {
		all = append(all, wire.Hit{ID: "c", By: 1}, wire.Hit{ID: fmt.Sprint("d", i), By: 1})
	}
	results := w.hitAll(all...)
	fired := 0
	for i, r := range results {
		if r.Outcome != wire.CountedIt || r.Count != 1 || r.Fired != (i%2 == 0) {
			w.Fatalf("hit %d: %+v", i, r)
		}
		if r.Fired {
			fired++
		}
	}
	equal(w, "runs", w.counts("mail").Retrying, int64(fired))
	equal(w, "windows", w.activity("d*").Open, n)
}

func guardOwnPayload(w *world) {
	w.define(wire.Threshold{ID: "a*", Count: 9, Payload: []byte("pattern's"), Within: lease})
	w.hitAll(hits("a1", "a2")...)
	w.define(wire.Threshold{ID: "a1", Count: 2, Payload: []byte("own"), Within: lease})
	w.define(wire.Threshold{ID: "a2", Count: 2, Payload: []byte("other"), Task: "bill", Within: lease})
	equal(w, "fires", brief(w.hitAll(hits("a1", "a2")...)), "2! 2!")
	equal(w, "own", w.fired("n", "mail"), "a1 threshold 2 own")
	equal(w, "other", w.fired("n", "bill"), "a2 threshold 2 other")
	equal(w, "open", w.dumpOf("keyfuse:open"), "")
}

// guardLookAgain: a connection that makes a look again by itself, after something
// else has crossed, must not give its firing the name of the first one.
func guardLookAgain(w *world) {
	w.define(wire.Threshold{ID: "u:*", Count: 3, Within: lease})
	w.incr("u:a", 3)
	w.incr("u:b", 1)
	hook := &between{call: func() { w.incr("u:b", 2) }}
	w.s.Redis().AddHook(hook)
	w.touch("u:a", "u:b")
	hook.call = nil
	if got := w.fired("n", "mail"); got != "u:a threshold 3; u:b threshold 3" && got != "u:b threshold 3; u:a threshold 3" {
		w.Errorf("fired %q", got)
	}
	equal(w, "ids", w.dumpOf("keyfuse:ids"), "")
}

// between makes a script again, and something before that.
type between struct{ call func() }

func (*between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil || b.call == nil || !strings.HasPrefix(cmd.Name(), "eval") {
			return err
		}
		b.call()
		return next(ctx, redis.NewCmd(ctx, cmd.Args()...))
	}
}
