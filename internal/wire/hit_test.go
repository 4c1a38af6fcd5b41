package wire_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var hitChecks = []check{
	{"hit: the first opens a window, the Nth fires and closes it", hitFires},
	{"hit: one that jumps over the threshold fires once, with the real count", hitBy},
	{"hit: one call crosses several times, of several counters", hitMany},
	{"hit: in mode once nothing more fires until the window ends", hitOnce},
	{"hit: a threshold of one fires with each hit, or once a window", hitOfOne},
	{"hit: what is refused changes nothing, nor does it stop the others", hitRefused},
	{"hit: a count stays below 2^53", hitOverflow},
	{"hit: ids may be any bytes", hitAnyID},
	{"hit: a repeated call counts once while its token is kept", hitAgain},
	{"hit: a repeated call that took several scripts counts once", hitManyAgain},
	{"hit: a request id is kept for an hour, and forgotten then", hitRequest},
	{"hit: tokens are no more than what their time holds", hitTokens},
	{"hit: no window where a timer is, and no timer where a window is", hitTimer},
	{"hit: nothing is left of windows that are closed", hitLeavesNothing},
	{"hit: the last ten firings are remembered", hitFirings},
}

// define defines a threshold that must be new. Its window, unless given, is long
// enough for some calls to a real Redis, and short enough to wait for its end.
// Its task, unless given, is mail.
func (w *world) define(t wire.Threshold) wire.Threshold {
	w.Helper()
	return w.defineAs(wire.DefinedNew, t)
}

func (w *world) defineAs(want wire.Defined, t wire.Threshold) wire.Threshold {
	w.Helper()
	if t.Task == "" {
		t.Task = "mail"
	}
	if t.Within == 0 {
		t.Within = w.within()
	}
	t, err := t.Complete(lease)
	must(t, err)(w)
	outcome, other, err := w.s.Define(w.Context(), t)
	if must(outcome, err)(w) != want {
		w.Fatalf("defining %q: outcome %d, want %d, %q in the way", t.ID, outcome, want, other)
	}
	return t
}

// within is how long a window is open unless a test says otherwise.
func (w *world) within() time.Duration {
	if w.real {
		return 15 * w.span // a slow machine must not miss the moment before a window ends
	}
	return 3 * w.span
}

func (w *world) hitAll(hits ...wire.Hit) []wire.HitResult {
	w.Helper()
	return w.hitWith(wire.NewToken(), hits...)
}

func (w *world) hitWith(token wire.Token, hits ...wire.Hit) []wire.HitResult {
	w.Helper()
	return must(w.s.Hit(w.Context(), token, hits))(w)
}

func (w *world) hit(id string) wire.HitResult {
	w.Helper()
	return w.hitBy(id, 1)
}

func (w *world) hitBy(id string, by int64) wire.HitResult {
	w.Helper()
	return w.hitAll(wire.Hit{ID: id, By: by})[0]
}

func hits(ids ...string) []wire.Hit {
	all := make([]wire.Hit, len(ids))
	for i, id := range ids {
		all[i] = wire.Hit{ID: id, By: 1}
	}
	return all
}

// brief are results as "1 2 3!": counts, ! where one fired, or why it was refused.
func brief(results []wire.HitResult) string {
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = string(r.Outcome)
		if r.Outcome == wire.CountedIt {
			words[i] = strconv.FormatInt(r.Count, 10)
		}
		if r.Fired {
			words[i] += "!"
		}
	}
	return strings.Join(words, " ")
}

// fired are the firings that a node can claim of a task, as "id reason count
// payload", sorted.
func (w *world) fired(node, task string) string {
	w.Helper()
	runs := w.take(node, task)
	lines := make([]string, len(runs))
	for i, run := range runs {
		lines[i] = strings.TrimSpace(fmt.Sprintf("%s %s %d %s", run.ID, run.Reason, run.Count, run.Payload))
	}
	if len(runs) > 0 {
		w.done(runs...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// dumpOf are the lines of dump of some keys that are there.
func (w *world) dumpOf(keys ...string) string {
	w.Helper()
	var text strings.Builder
	for line := range strings.Lines(w.dump()) {
		for _, key := range keys {
			if strings.HasPrefix(line, fmt.Sprintf("%q ", key)) {
				text.WriteString(line)
			}
		}
	}
	return text.String()
}

// changed are the keys that differ between two dumps.
func changed(before, after string) string {
	var keys []string
	for line := range strings.Lines(changes(before, after)) {
		key, _, _ := strings.Cut(line[1:], " ")
		if !strings.Contains(strings.Join(keys, " "), key) {
			keys = append(keys, key)
		}
	}
	return strings.Join(keys, " ")
}

func (w *world) windowOf(id string) wire.Window {
	w.Helper()
	windows := must(w.s.Windows(w.Context(), []string{id}))(w)
	if windows[0] == nil {
		w.Fatalf("no window is open for %q", id)
	}
	return *windows[0]
}

// isClosed checks that of a counter's window nothing is left.
func (w *world) isClosed(id string) {
	w.Helper()
	ctx := w.Context()
	equal(w, "keys of "+id, must(w.rdb.Exists(ctx, id, "class:"+id, "keyfuse:items:"+id).Result())(w), 0)
	equal(w, "window of "+id, must(w.rdb.HExists(ctx, "keyfuse:windows", id).Result())(w), false)
	equal(w, "windows of "+id, must(w.rdb.HExists(ctx, "keyfuse:open", id).Result())(w), false)
	equal[error](w, "index of "+id, w.rdb.ZScore(ctx, "keyfuse:due:mail", id).Err(), redis.Nil)
}

func hitFires(w *world) {
	w.define(wire.Threshold{ID: "c", Payload: []byte("hello you"), Count: 3})
	now := w.now()
	first := w.hit("c")
	if first.Ends.Before(now.Add(w.within()).Truncate(time.Millisecond)) {
		w.Errorf("the window ends %s, before its time", first.Ends)
	}
	equal(w, "first", first, wire.HitResult{Count: 1, Threshold: 3, Ends: first.Ends})
	h := w.get("c")
	equal(w, "class", h.Class, "mail hello you")
	equal(w, "due", []time.Time{h.Due(), h.Indexed, h.Fuse}, []time.Time{first.Ends, first.Ends, first.Ends.Add(24 * time.Hour)})
	equal(w, "second", w.hit("c"), wire.HitResult{Count: 2, Threshold: 3, Ends: first.Ends})
	equal(w, "window", w.windowOf("c"), wire.Window{
		Start: first.Ends.Add(-w.within()), End: first.Ends, Count: 2, Threshold: 3, Definition: "c",
	})
	equal(w, "early", w.fired("n", "mail"), "")
	equal(w, "third", w.hit("c"), wire.HitResult{Count: 3, Threshold: 3, Fired: true, Ends: first.Ends})
	w.isClosed("c")
	run := w.takeOne("n", "mail")
	equal(w, "run", fmt.Sprintf("%s %s %s %d %d %s", run.ID, run.Reason, run.Source, run.Count, run.Attempt, run.Payload), "c threshold threshold 3 1 hello you")
	if run.Due.After(w.now()) || run.Due.Before(now.Truncate(time.Millisecond)) {
		w.Errorf("due %s, want when it was hit", run.Due)
	}
	w.done(run)
	last := w.hit("c")
	equal(w, "the next", last.Count, 1)
	w.until(last.Ends)
	equal(w, "fired", w.fired("n", "mail"), "c timeout 1 hello you")
	w.isClosed("c")
}

func hitBy(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 3})
	equal(w, "below", w.hitBy("c", 2).Fired, false)
	equal(w, "over", brief([]wire.HitResult{w.hitBy("c", 100)}), "102!")
	equal(w, "at once", brief([]wire.HitResult{w.hitBy("c", 1<<40)}), "1099511627776!")
	equal(w, "fired", w.counts("mail").Retrying, 2)
	var counts int64
	for _, run := range w.take("n", "mail") {
		counts += run.Count
	}
	equal(w, "counts", counts, 102+1<<40)
	w.isClosed("c")
}

func hitMany(w *world) {
	w.define(wire.Threshold{ID: "a", Count: 3})
	w.define(wire.Threshold{ID: "b", Count: 2, Task: "bill"})
	w.define(wire.Threshold{ID: "o", Count: 2, Task: "once", Mode: wire.Once})
	w.hit("a")
	results := w.hitAll(hits("a", "b", "a", "x", "a", "b", "a", "o", "a", "o", "o", "a", "b", "a")...)
	equal(w, "results", brief(results), "2 1 3! N 1 2! 2 1 3! 2! 3 1 1 2")
	equal(w, "of a", w.fired("n", "mail"), "a threshold 3; a threshold 3")
	equal(w, "of b", w.fired("n", "bill"), "b threshold 2")
	equal(w, "of o", w.fired("n", "once"), "o threshold 2")
	for _, id := range []string{"a", "b", "o"} {
		equal(w, id, must(w.rdb.Get(w.Context(), id).Result())(w), map[string]string{"a": "2", "b": "1", "o": "3"}[id])
	}
	equal(w, "open", w.dumpOf("keyfuse:open"), `"keyfuse:open" -1 map["a":"1" "b":"1" "o":"1"]`+"\n")
	equal(w, "jumps", brief(w.hitAll(wire.Hit{ID: "a", By: 7}, wire.Hit{ID: "a", By: 2}, wire.Hit{ID: "a", By: 2})), "9! 2 4!")
	equal(w, "of a", w.fired("n", "mail"), "a threshold 4; a threshold 9")
	equal(w, "left of a", w.dumpOf("a", "class:a", "keyfuse:due:mail"), "")
}

func hitOnce(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2, Mode: wire.Once})
	first, second := w.hit("c"), w.hit("c")
	equal(w, "second", second, wire.HitResult{Count: 2, Threshold: 2, Fired: true, Ends: first.Ends})
	equal(w, "fired", w.fired("n", "mail"), "c threshold 2")
	equal(w, "fuse", w.get("c").Fuse, first.Ends) // other clients' hits end with the window
	before := w.dump()
	equal(w, "more", w.hitBy("c", 9), wire.HitResult{Count: 11, Threshold: 2, Ends: first.Ends})
	equal(w, "changed", changed(before, w.dump()), `"c" "keyfuse:counted" "keyfuse:counted_until" "keyfuse:counts"`)
	equal(w, "window", w.windowOf("c"), wire.Window{
		Start: first.Ends.Add(-w.within()), End: first.Ends, Count: 11, Threshold: 2, Fired: true, Definition: "c",
	})
	w.until(first.Ends)
	next := w.hit("c") // before any claim
	equal(w, "next", brief([]wire.HitResult{next}), "1")
	if !next.Ends.After(first.Ends) {
		w.Errorf("the next window ends %s, no later than the one before", next.Ends)
	}
	equal(w, "fired", w.fired("n", "mail"), "")
	equal(w, "again", brief(w.hitAll(hits("c", "c", "c")...)), "2! 3 4")
	equal(w, "fired", w.fired("n", "mail"), "c threshold 2")
	w.until(next.Ends)
	equal(w, "after its end", w.fired("n", "mail"), "")
	w.isClosed("c")
}

func hitOfOne(w *world) {
	w.define(wire.Threshold{ID: "each", Count: 1})
	w.define(wire.Threshold{ID: "once", Count: 1, Mode: wire.Once, Task: "bill"})
	equal(w, "hits", brief(w.hitAll(hits("each", "once", "each", "once")...)), "1! 1! 1! 2")
	equal(w, "hit", w.hit("each").Fired, true)
	equal(w, "each", w.fired("n", "mail"), "each threshold 1; each threshold 1; each threshold 1")
	equal(w, "once", w.fired("n", "bill"), "once threshold 1")
	w.until(w.windowOf("once").End)
	equal(w, "once", w.fired("n", "bill"), "")
	w.isClosed("once")
}

func hitRefused(w *world) {
	w.define(wire.Threshold{ID: "bad:*", Count: 2, Within: lease})
	w.define(wire.Threshold{ID: "good", Count: 2, Within: lease})
	no := []string{"", "abc", "1.5", " 1", "1 ", "1e3", "0x1", "+1", "007", "-0", "-", "9223372036854775808", "-99999999999999999999", "1\n"}
	var bad []wire.Hit
	for _, value := range no {
		w.set("bad:"+value, value, 0)
		bad = append(bad, wire.Hit{ID: "bad:" + value, By: 1})
	}
	must(w.rdb.RPush(w.Context(), "bad:list", "1").Result())(w)
	must(w.rdb.HSet(w.Context(), "bad:hash", "1", "1").Result())(w)
	bad = append(bad, hits("bad:list", "bad:hash", "none", "bad", "goo", "good ")...)
	want := strings.Repeat("W ", len(no)+2) + "N N N N"

	before := w.dump()
	equal(w, "refused", brief(w.hitAll(bad...)), want)
	equal(w, "changes", changes(before, w.dump()), "")
	w.touch("bad:abc", "bad:list", "none", "bad:9223372036854775808")
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "with others", brief(w.hitAll(append(bad, hits("good", "bad:new")...)...)), want+" 1 1")
	for i, value := range no {
		equal(w, bad[i].ID, must(w.rdb.Get(w.Context(), bad[i].ID).Result())(w), value)
	}
}

func hitOverflow(w *world) {
	const most = wire.MaxCount
	w.define(wire.Threshold{ID: "c", Count: most, Within: lease})
	w.define(wire.Threshold{ID: "d", Count: 5, Within: lease, Task: "bill"})
	equal(w, "by", brief([]wire.HitResult{w.hitBy("c", most-1)}), fmt.Sprint(most-1))
	before := w.dump()
	equal(w, "over", brief([]wire.HitResult{w.hitBy("c", 2)}), "O")
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "up to it", brief(w.hitAll(wire.Hit{ID: "c", By: most}, wire.Hit{ID: "c", By: 1}, wire.Hit{ID: "c", By: 1})), fmt.Sprintf("O %d! 1", most))
	equal(w, "fired", w.fired("n", "mail"), fmt.Sprintf("c threshold %d", most))
	for _, count := range []string{"9223372036854775807", "9007199254740993"} { // beyond what Lua counts
		w.set("d", count, 0)
		equal(w, "over", brief([]wire.HitResult{w.hit("d")}), "O")
		w.touch("d")
		equal(w, "exactly", w.fired("n", "bill"), "d threshold "+count)
	}
	w.hitBy("d", 2)
	must(w.rdb.IncrBy(w.Context(), "d", 1<<60).Result())(w)
	equal(w, "over", brief([]wire.HitResult{w.hit("d")}), "O")
	w.touch("d")
	equal(w, "exactly", w.fired("n", "bill"), fmt.Sprintf("d threshold %d", 1<<60+2))
}

var anyBytes = []string{
	" ", "\n", "\x00", "a b", "a\nb\r\n", "a\x00b", "N", "1/2!@3", "%a+", "%", "[a-z]?", "^$", `\`, "\xff\xfe", "é", "a:b", "open", strings.Repeat("x", 400),
}

func hitAnyID(w *world) {
	w.define(wire.Threshold{ID: "%p [*", Count: 2})
	var all []wire.Hit
	want := map[string]int{}
	for _, id := range anyBytes {
		w.define(wire.Threshold{ID: id, Count: 2})
		all = append(all, hits(id, "%p ["+id)...)
		want[id+" threshold 2"], want["%p ["+id+" threshold 2"] = 1, 1
		want[id+" timeout 1"], want["%p ["+id+" timeout 1"] = 1, 1
	}
	got := map[string]int{}
	claim := func() {
		for _, run := range w.take("n", "mail") {
			got[fmt.Sprintf("%s %s %d", run.ID, run.Reason, run.Count)]++
			w.done(run)
		}
	}
	w.hitAll(all...)
	w.hitAll(all...)
	claim()
	last := w.hitAll(all...)
	for i, hit := range all {
		equal(w, "window", w.windowOf(hit.ID).End, last[i].Ends)
		equal(w, "due", w.get(hit.ID).Due(), last[i].Ends)
	}
	w.until(last[0].Ends)
	claim()
	equal(w, "fired", got, want)
	equal(w, "left", w.dumpOf("keyfuse:windows", "keyfuse:open", "keyfuse:due:mail"), "")
	for _, id := range anyBytes {
		equal(w, "last firings", w.activity(id).Fired[0].ID, id)
	}
	equal(w, "last firings", len(w.activity("%p [*").Fired), 10)
}

func (w *world) activity(id string) wire.Activity {
	w.Helper()
	return must(w.s.Activities(w.Context(), []string{id}))(w)[0]
}
