package wire_test

import (
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var windowChecks = []check{
	{"window: its end fires with the count, or drops it", windowEnds},
	{"window: the first hit after its end closes it and opens another", windowBoundary},
	{"window: claimed at its end, and then another opens", windowClaimed},
	{"window: many end at once", windowMany},
	{"window: with debounce each hit restarts it, up to the longest wait", windowDebounce},
	{"window: without its class key it is cancelled", windowClassGone},
	{"window: ends with the count it had when its counter is deleted or set", windowCounterGone},
	{"window: a counter that took its counter's place is used up when it crosses", windowCounterCrosses},
	{"window: a TTL of a client's own does not move its end", windowCounterExpires},
	{"window: of a counter that holds other data ends with the count it had", windowCounterForeign},
	{"window: cancel closes it", windowCancel},
	{"window: fired by hand with the count it has", windowFire},
	{"window: what can't be fired by hand", windowFireNot},
	{"window: its end can't be moved", windowMove},
	{"window: events and sweeps take it for no bare job", windowAdopt},
	{"window: waits while its task is paused, and hits go on", windowPaused},
}

func windowEnds(w *world) {
	w.define(wire.Threshold{ID: "fire", Count: 9})
	w.define(wire.Threshold{ID: "drop", Count: 9, OnTimeout: wire.TimeoutDrops})
	w.hitBy("fire", 3)
	w.hitBy("drop", 4)
	last := w.hitAll(wire.Hit{ID: "fire", By: 4}, wire.Hit{ID: "drop", By: 4})
	if !w.real {
		w.until(last[0].Ends.Add(-time.Millisecond))
		equal(w, "a moment early", w.fired("n", "mail"), "")
	}
	w.until(last[1].Ends)
	run := w.takeOne("n", "mail")
	equal(w, "run", fmt.Sprintf("%s %s %s %d %s", run.ID, run.Reason, run.Source, run.Count, run.Due), fmt.Sprintf("fire timeout index 7 %s", last[0].Ends))
	w.isClosed("fire")
	w.isClosed("drop")
	equal(w, "remembered", w.activity("fire").Fired, []wire.Fired{{At: w.activity("fire").Fired[0].At, Reason: "timeout", Count: 7, ID: "fire"}})
	equal(w, "remembered", len(w.activity("drop").Fired), 0)
}

func windowBoundary(w *world) {
	w.define(wire.Threshold{ID: "fire", Count: 5})
	w.define(wire.Threshold{ID: "drop", Count: 5, OnTimeout: wire.TimeoutDrops})
	old := w.hitAll(wire.Hit{ID: "fire", By: 3}, wire.Hit{ID: "drop", By: 4})
	w.until(old[1].Ends.Add(3 * time.Millisecond))
	results := w.hitAll(hits("fire", "drop", "fire", "drop")...)
	equal(w, "results", brief(results), "1 1 2 2")
	if !results[0].Ends.After(old[0].Ends) {
		w.Errorf("the new window ends %s, the old one %s", results[0].Ends, old[0].Ends)
	}
	equal(w, "start", w.windowOf("fire").Start, results[0].Ends.Add(-w.within()))
	run := w.takeOne("n", "mail")
	equal(w, "run", fmt.Sprintf("%s %s %s %d %s", run.ID, run.Reason, run.Source, run.Count, run.Due), fmt.Sprintf("fire timeout threshold 3 %s", old[0].Ends))
	equal(w, "open", w.dumpOf("keyfuse:open"), `"keyfuse:open" -1 map["drop":"1" "fire":"1"]`+"\n")
	w.until(results[1].Ends)
	equal(w, "across both ends", brief(w.hitAll(wire.Hit{ID: "fire", By: 6}, wire.Hit{ID: "fire", By: 1})), "6! 1")
	equal(w, "fired", w.fired("n", "mail"), "fire threshold 6; fire timeout 2")
	equal(w, "open", w.dumpOf("keyfuse:open"), `"keyfuse:open" -1 map["fire":"1"]`+"\n")
}

func windowClaimed(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 5})
	old := w.hitBy("c", 3)
	w.until(old.Ends)
	equal(w, "claimed", w.fired("n", "mail"), "c timeout 3")
	w.isClosed("c")
	next := w.hitBy("c", 4)
	equal(w, "next", next, wire.HitResult{Count: 4, Threshold: 5, Ends: next.Ends})
	equal(w, "nothing", w.fired("n", "mail"), "")
	w.until(next.Ends)
	equal(w, "claimed", w.fired("n", "mail"), "c timeout 4")
}

// windowMany ends more windows than one claim takes, among other jobs.
func windowMany(w *world) {
	const n = 120
	w.define(wire.Threshold{ID: "f:*", Count: 9})
	w.define(wire.Threshold{ID: "d:*", Count: 9, OnTimeout: wire.TimeoutDrops})
	want := map[string]int64{"timer": 0}
	var all []wire.Hit
	for i := range n {
		all = append(all, hits(fmt.Sprint("f:", i), fmt.Sprint("d:", i))...)
		all[2*i].By += int64(i % 7)
		want[all[2*i].ID] = all[2*i].By
	}
	results := w.hitAll(all...)
	w.armNew(job("timer", "mail", w.span))
	w.until(results[2*n-1].Ends)
	got := map[string]int64{}
	for range 12 { // more than enough
		req := w.wants("n", 50, "mail")
		runs := w.claim(req).Runs
		equal(w, "the same call again", fmt.Sprint(w.claim(req).Runs), fmt.Sprint(runs))
		for _, run := range runs {
			if _, twice := got[run.ID]; twice {
				w.Errorf("%s fired twice", run.ID)
			}
			got[run.ID] = run.Count
		}
	}
	equal(w, "counts", got, want)
	equal(w, "left", w.dumpOf("keyfuse:windows", "keyfuse:open", "keyfuse:due:mail"), "")
}

func windowDebounce(w *world) {
	const n = 3
	wait := 3 * w.span
	if w.real {
		wait = 15 * w.span // see within
	}
	w.define(wire.Threshold{ID: "c", Count: 99, Debounce: wait, MaxWait: n * wait})
	w.define(wire.Threshold{ID: "cross", Count: 2, Debounce: wait, MaxWait: n * wait, Task: "bill"})
	equal(w, "crosses", brief(w.hitAll(hits("cross", "cross", "cross")...)), "1 2! 1")
	first := w.hit("c")
	start := first.Ends.Add(-wait)
	for i := range 2*n - 1 {
		w.until(start.Add(time.Duration(i+1) * wait / 2))
		before := w.now().Truncate(time.Millisecond)
		r := w.hit("c")
		earliest, latest := before.Add(wait), start.Add(n*wait)
		if earliest.After(latest) {
			earliest = latest
		}
		if r.Ends.Before(earliest) || r.Ends.After(latest) {
			w.Errorf("hit %d: the window ends %s, want between %s and %s", i, r.Ends, earliest, latest)
		}
		equal(w, "due", w.get("c").Due(), r.Ends)
		equal(w, "count", r.Count, int64(i+2))
	}
	w.until(start.Add(n * wait))
	run := w.takeOne("n", "mail")
	equal(w, "run", fmt.Sprint(run.Reason, run.Count, run.Due), fmt.Sprint("timeout", 2*n, start.Add(n*wait)))
	equal(w, "new", w.hit("c").Count, 1)
	equal(w, "crossed", w.fired("n", "bill"), "cross threshold 2; cross timeout 1")
}

func windowClassGone(w *world) {
	for _, id := range []string{"claim", "hit", "touch", "both", "more"} {
		w.define(wire.Threshold{ID: id, Count: 9})
	}
	last := w.hitAll(hits("claim", "hit", "hit", "touch", "both", "more", "more")...)
	w.del("class:claim", "class:hit", "class:touch", "class:both", "both", "class:more")
	equal(w, "a new one", brief(w.hitAll(hits("hit")...)), "1")
	w.touch("touch", "both")
	w.isClosed("both")
	must(w.rdb.IncrBy(w.Context(), "more", 3).Result())(w) // since then, for the next window
	w.touch("more")
	equal(w, "a new one", w.windowOf("more").Count, 3)
	w.until(last[0].Ends)
	w.cancel("hit")
	w.cancel("more")
	equal(w, "fired", w.fired("n", "mail"), "")
	w.isClosed("claim")
	w.isClosed("touch")
}

// windowCounterGone: the counter of an open window that has no TTL, and another
// count than was seen, is another one, and counts for the next window.
func windowCounterGone(w *world) {
	for _, how := range []string{"del", "set lower", "set higher", "set below"} {
		for _, who := range []string{"hit", "touch", "claim", "fire"} {
			id := how + " " + who
			t := w.define(wire.Threshold{ID: id, Count: 9})
			old := w.hitBy(id, 3)
			next := map[string]int64{"del": 0, "set lower": 1, "set higher": 5, "set below": -3}[how]
			switch how {
			case "del":
				w.del(id)
			default:
				w.set(id, fmt.Sprint(next), 0)
			}
			reason := "timeout"
			switch who {
			case "hit":
				next++
				equal(w, id, brief([]wire.HitResult{w.hit(id)}), fmt.Sprint(next))
			case "touch":
				w.touch(id)
			case "claim":
				w.until(old.Ends)
			case "fire":
				reason = "manual"
				equal(w, id, must(w.s.Move(w.Context(), id, wire.When{}, true))(w).Outcome, wire.ChangedIt)
			}
			equal(w, id, w.fired("n", "mail"), id+" "+reason+" 3")
			w.touch(id)
			if next < 0 && who != "hit" { // a look opens no window below zero
				equal(w, "counter "+id, must(w.rdb.Get(w.Context(), id).Result())(w), fmt.Sprint(next))
				w.del(id)
			} else if next != 0 {
				equal(w, id, w.windowOf(id).Count, next)
				equal(w, "TTL of "+id, w.get(id).Fuse, w.windowOf(id).End.Add(24*time.Hour))
			}
			w.cancel(id)
			w.isClosed(id)
			must(w.s.Undefine(w.Context(), t.ID))(w)
		}
	}
}

func windowCounterCrosses(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 5, Within: lease})
	w.hitBy("c", 3)
	w.set("c", "7", 0)
	equal(w, "crosses", brief(w.hitAll(hits("c")...)), "8!")
	equal(w, "fired", w.fired("n", "mail"), "c threshold 8; c timeout 3")
	w.isClosed("c")
}

func windowCounterExpires(w *world) {
	for _, id := range []string{"hit", "touch", "late"} {
		w.define(wire.Threshold{ID: id, Count: 9, Within: 8 * w.span})
	}
	old := w.hitAll(hits("hit", "hit", "touch", "late", "late")...)
	for id, ttl := range map[string]time.Duration{"hit": lease, "touch": lease, "late": w.span} {
		must(w.rdb.PExpire(w.Context(), id, ttl).Result())(w)
	}
	w.hit("hit")
	w.touch("touch")
	for _, id := range []string{"hit", "touch"} {
		equal(w, id, w.get(id).Fuse, old[0].Ends.Add(24*time.Hour))
	}
	w.pass(2 * w.span)
	equal(w, "counter", must(w.rdb.Exists(w.Context(), "late").Result())(w), 0)
	equal(w, "early", w.fired("n", "mail"), "")
	w.until(old[0].Ends)
	equal(w, "fired", w.fired("n", "mail"), "hit timeout 3; late timeout 2; touch timeout 1")
}

func windowCounterForeign(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9})
	w.define(wire.Threshold{ID: "d", Count: 9})
	last := w.hitAll(hits("c", "c", "d")...)
	w.set("c", "abc", 0)
	w.del("d")
	must(w.rdb.RPush(w.Context(), "d", "x").Result())(w)
	before := w.dump()
	equal(w, "hits", brief(w.hitAll(hits("c", "d")...)), "W W")
	w.touch("c", "d")
	equal(w, "changes", changes(before, w.dump()), "")
	w.until(last[0].Ends)
	equal(w, "fired", w.fired("n", "mail"), "c timeout 2; d timeout 1")
	equal(w, "left", w.dumpOf("c", "d"), `"c" -1 "abc"`+"\n"+`"d" -1 ["x"]`+"\n")
}
