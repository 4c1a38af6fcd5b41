package wire_test

import (
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var bareChecks = []check{
	{"bare counter: a look gives it a window, a TTL and a class key", bareLook},
	{"bare counter: fires at N, with the count of a jump", bareFires},
	{"bare counter: what came since the last look is counted at the end", bareEnd},
	{"bare counter: an end that nobody has closed yet still counts", bareLate},
	{"bare counter: counts down as well", bareDown},
	{"bare counter: after the end of a window in mode once it begins anew", bareOnce},
	{"bare counter: with debounce a look restarts the window if it counted", bareDebounce},
	{"bare counter: the plain recipe on a defined id", bareRecipe},
	{"bare counter: a TTL of its own ends its first window", bareTTL},
	{"bare counter: a look at what is none changes nothing", bareNothing},
	{"bare counter: many in one look", bareMany},
}

// touch looks at what other clients have counted.
func (w *world) touch(ids ...string) {
	w.Helper()
	must(w.s.Touch(w.Context(), ids))(w)
}

func (w *world) incr(id string, by int64) int64 {
	w.Helper()
	return must(w.rdb.IncrBy(w.Context(), id, by).Result())(w)
}

func bareLook(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Payload: []byte("p")})
	w.incr("c", 1)
	w.incr("c", 2)
	before := w.now().Truncate(time.Millisecond)
	w.touch("c")
	window := w.windowOf("c")
	equal(w, "window", window, wire.Window{Start: window.Start, End: window.Start.Add(w.within()), Count: 3, Threshold: 9, Definition: "c"})
	if window.Start.Before(before) {
		w.Errorf("the window began %s, before it was looked at", window.Start)
	}
	h := w.get("c")
	equal(w, "held", []any{h.Class, h.Due(), h.Fuse}, []any{"mail p", window.End, window.End.Add(24 * time.Hour)})
	equal(w, "one more", w.incr("c", 1), 4)
	equal(w, "seen", w.windowOf("c").Count, 4)
	equal(w, "and a hit", w.hit("c"), wire.HitResult{Count: 5, Threshold: 9, Ends: window.End})
	w.until(window.End)
	equal(w, "fired", w.fired("n", "mail"), "c timeout 5 p")
	w.isClosed("c")
}

func bareFires(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 3, Within: lease})
	for i := range 3 {
		w.incr("c", 1)
		equal(w, "crosses", must(w.s.Touch(w.Context(), []string{"c"}))(w), i == 2)
	}
	equal(w, "fired", w.fired("n", "mail"), "c threshold 3")
	w.isClosed("c")
	w.incr("c", 17)
	w.touch("c")
	equal(w, "without a look before", w.fired("n", "mail"), "c threshold 17")
	w.isClosed("c")
	w.hit("c")
	w.incr("c", 5)
	equal(w, "by a hit", brief(w.hitAll(hits("c", "c")...)), "7! 1")
	w.incr("c", 2)
	w.touch("c")
	equal(w, "fired", w.fired("n", "mail"), "c threshold 3; c threshold 7")
	w.isClosed("c")
}

func bareEnd(w *world) {
	w.define(wire.Threshold{ID: "below", Count: 9})
	w.define(wire.Threshold{ID: "over", Count: 3})
	w.define(wire.Threshold{ID: "drop", Count: 3, OnTimeout: wire.TimeoutDrops})
	w.define(wire.Threshold{ID: "dropped", Count: 9, OnTimeout: wire.TimeoutDrops})
	ids := []string{"below", "over", "drop", "dropped"}
	w.hitAll(hits(ids...)...)
	for _, id := range ids {
		w.incr(id, 3)
	}
	w.until(w.windowOf("dropped").End)
	equal(w, "fired", w.fired("n", "mail"), "below timeout 4; drop threshold 4; over threshold 4")
	for _, id := range ids {
		w.isClosed(id)
	}
}

func bareLate(w *world) {
	for _, who := range []string{"claim", "hit", "touch"} {
		w.define(wire.Threshold{ID: who, Count: 9, Task: who})
		w.hit(who)
	}
	w.until(w.windowOf("touch").End)
	for _, who := range []string{"claim", "hit", "touch"} {
		w.incr(who, 2)
	}
	w.hit("hit")
	w.touch("touch")
	for _, who := range []string{"claim", "hit", "touch"} {
		equal(w, who, w.fired("n", who), who+" timeout 3")
	}
	equal(w, "counters", []string{w.dumpOf("claim"), w.dumpOf("touch")}, []string{"", ""})
	equal(w, "the hit", w.windowOf("hit").Count, 1)
}

func bareDown(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 3})
	before := w.state()
	for _, by := range []int64{-3, 3} { // below zero and zero open no window
		w.incr("c", by)
		left := w.dumpOf("c")
		w.touch("c")
		equal(w, "no window", w.dumpOf("c", "class:c", "keyfuse:windows"), left)
	}
	w.del("c")
	equal(w, "changes", changes(before, w.state()), "")
	w.hitBy("c", 2)
	w.incr("c", -1)
	w.touch("c")
	equal(w, "down", w.hit("c").Count, 2)
	w.incr("c", -7)
	last := w.hit("c")
	equal(w, "below zero", last.Count, -4)
	w.until(last.Ends)
	equal(w, "fired", w.fired("n", "mail"), "")
	w.isClosed("c")
}

func bareOnce(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2, Mode: wire.Once})
	w.incr("c", 2)
	w.touch("c")
	window := w.windowOf("c")
	equal(w, "fired", window.Fired, true)
	w.incr("c", 3)
	w.touch("c")
	equal(w, "goes on", w.windowOf("c"), wire.Window{Start: window.Start, End: window.End, Count: 5, Threshold: 2, Fired: true, Definition: "c"})
	equal(w, "fired", w.fired("n", "mail"), "c threshold 2")
	w.until(window.End.Add(time.Millisecond)) // in the millisecond of its end it may be there or not
	equal(w, "a new counter", w.incr("c", 1), 1)
	w.touch("c")
	equal(w, "a new window", w.windowOf("c").Count, 1)
	equal(w, "nothing", w.fired("n", "mail"), "")
	w.incr("c", 1)
	w.touch("c")
	equal(w, "fired", w.fired("n", "mail"), "c threshold 2")

	w.until(w.windowOf("c").End.Add(time.Millisecond))
	w.incr("c", 1)
	equal(w, "closed by a claim", w.fired("n", "mail"), "")
	equal(w, "the counter stays", must(w.rdb.Get(w.Context(), "c").Result())(w), "1")
	equal(w, "and counts", brief(w.hitAll(hits("c")...)), "2!")
}

func bareDebounce(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Debounce: w.within(), MaxWait: lease})
	w.incr("c", 1)
	w.touch("c")
	first := w.windowOf("c")
	w.until(first.Start.Add(w.span))
	w.touch("c")
	equal(w, "nothing new", w.windowOf("c").End, first.End)
	w.incr("c", 1)
	w.touch("c")
	if end := w.windowOf("c").End; end.Before(first.End.Add(w.span)) {
		w.Errorf("the window ends %s, want a span later than %s", end, first.End)
	}
}

func bareRecipe(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 3, Within: lease})
	for _, adopted := range []bool{false, true} {
		w.incr("c", 1)
		must(w.rdb.PExpire(w.Context(), "c", w.within()).Result())(w)
		w.set("class:c", "mail mine", 0)
		ends := w.get("c").Fuse
		if adopted { // a sweep was first
			equal(w, "adopted", w.adopt(wire.BySweep, 0, "c").Indexed, 1)
		}
		w.touch("c")
		equal(w, "ends", []time.Time{w.windowOf("c").End, w.get("c").Due()}, []time.Time{ends, ends})
		w.incr("c", 1)
		if !adopted {
			w.until(ends)
			equal(w, "timeout", w.fired("n", "mail"), "c timeout 2 mine")
		} else {
			w.incr("c", 2)
			w.touch("c")
			equal(w, "threshold", w.fired("n", "mail"), "c threshold 4 mine")
		}
		w.isClosed("c")
	}
}

func bareTTL(w *world) {
	w.define(wire.Threshold{ID: "short", Count: 9, Within: lease})
	w.define(wire.Threshold{ID: "long", Count: 9, Within: lease})
	w.set("short", "2", lease/2)
	w.set("long", "2", 2*lease)
	short := w.get("short").Fuse
	r := w.hitAll(hits("short", "long")...)
	equal(w, "short", r[0], wire.HitResult{Count: 3, Threshold: 9, Ends: short})
	equal(w, "long", r[1], wire.HitResult{Count: 3, Threshold: 9, Ends: w.windowOf("long").Start.Add(lease)})
}

func bareNothing(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Within: lease})
	w.define(wire.Threshold{ID: "open", Count: 9, Within: lease})
	w.hit("open")
	w.set("other", "5", 0)
	before := w.dump()
	equal(w, "crosses", must(w.s.Touch(w.Context(), []string{"c", "open", "other", "none", "c"}))(w), false)
	equal(w, "changes", changes(before, w.dump()), "")
}

func bareMany(w *world) {
	w.define(wire.Threshold{ID: "p:*", Count: 3, Within: lease})
	ids := make([]string, wire.MaxTouch)
	for i := range ids {
		ids[i] = fmt.Sprint("p:", i)
	}
	pipe := w.rdb.Pipeline()
	for i, id := range ids {
		pipe.IncrBy(w.Context(), id, int64(1+i%3))
	}
	must(pipe.Exec(w.Context()))(w)
	w.touch(ids...)
	equal(w, "open", w.activity("p:*").Open, wire.MaxTouch-wire.MaxTouch/3)
	equal(w, "fired", w.counts("mail"), wire.Count{Task: "mail", Pending: wire.MaxTouch - wire.MaxTouch/3, Retrying: wire.MaxTouch / 3})
}
