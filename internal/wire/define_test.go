package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var defineChecks = []check{
	{"define: new, the same, replaced, removed, and told to the nodes", defineOutcomes},
	{"define: the longest prefix wins, an id's own before all patterns", definePatterns},
	{"define: patterns that match equally are refused", defineEqual},
	{"define: Go and the scripts match the same keys", defineMatches},
	{"define: an open window goes on by the new count", defineCount},
	{"define: an open window goes on under the new task", defineTask},
	{"define: an open window keeps its end, and what it does is new", defineWithin},
	{"define: an open window goes on under a definition of its own", defineOwn},
	{"define: without a definition an open window ends as it would have", defineRemoved},
}

func (w *world) undefine(id string) bool {
	w.Helper()
	return must(w.s.Undefine(w.Context(), id))(w)
}

// version rises when the definitions change.
func (w *world) version() int64 {
	w.Helper()
	return w.beat("v").Defined
}

func defineOutcomes(w *world) {
	w.beat("v")
	empty, version := w.state(), w.version()
	changed := func(what string, want bool) {
		w.Helper()
		v := w.version()
		equal(w, what, v > version, want)
		version = v
	}
	full := wire.Threshold{
		ID: "c\n\x00", Task: "mail", Payload: []byte("a\nb \xff"), Count: wire.MaxCount, Within: time.Hour, OnTimeout: wire.TimeoutDrops,
		Mode: wire.Once, Debounce: time.Minute, MaxWait: time.Hour, MaxItems: 7, MaxBytes: 8,
	}
	w.define(full)
	changed("new", true)
	w.defineAs(wire.DefinedSame, full)
	changed("the same", false)
	equal(w, "read", *must(w.s.Threshold(w.Context(), full.ID))(w), full)
	short := w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: full.ID, Count: 1})
	changed("replaced", true)
	equal(w, "none", must(w.s.Threshold(w.Context(), "none"))(w), nil)
	pattern := w.define(wire.Threshold{ID: "a*", Count: 1})
	equal(w, "all", must(w.s.Thresholds(w.Context()))(w), []wire.Threshold{pattern, short})
	changed("a pattern", true)
	equal(w, "removed", w.undefine("a*"), true)
	equal(w, "all", must(w.s.Thresholds(w.Context()))(w), []wire.Threshold{short})
	changed("removed", true)
	equal(w, "removed again", w.undefine("a*"), false)
	changed("removed again", false)
	equal(w, "removed", w.undefine(full.ID), true)
	equal(w, "left", strings.ReplaceAll(w.state(), w.dumpOf("keyfuse:defined"), ""), strings.ReplaceAll(empty, w.dumpOf("keyfuse:defined"), ""))
}

// definePatterns asks which definition counts by what its threshold is.
func definePatterns(w *world) {
	for i, id := range []string{"log*", "login:*", "login::*", "login:a", "%a+*", "[ab]*", "x*\n"} {
		w.define(wire.Threshold{ID: id, Count: int64(100 + i), Within: lease})
	}
	for id, want := range map[string]int64{
		"log": 100, "login": 100, "log\x00": 100, "login:": 101, "login:b": 101, "login:ax": 101, "login::x": 102, "login:a": 103,
		"lo": 0, "xlog": 0, "": 0, "%a+": 104, "aaa": 0, "[ab]": 105, "[ab]c": 105, "a": 0, "x\n": 106, "x \n": 106, "x": 0,
	} {
		r := w.hitAll(hits(id)...)[0]
		equal(w, id, fmt.Sprint(r.Threshold, r.Outcome), fmt.Sprint(want, map[bool]wire.Counted{true: "N", false: ""}[want == 0]))
	}
	equal(w, "removed", w.undefine("login:a"), true)
	equal(w, "the pattern then", w.hit("login:a").Threshold, 101)
	equal(w, "removed", w.undefine("login:*"), true)
	equal(w, "the shorter one then", w.hit("login:new").Threshold, 100)
}

func defineEqual(w *world) {
	w.define(wire.Threshold{ID: "a*", Count: 1})
	w.define(wire.Threshold{ID: "b*x", Count: 1})
	w.define(wire.Threshold{ID: "b*y", Count: 1}) // no key ends with both
	w.define(wire.Threshold{ID: "bb*", Count: 1})
	before := w.dump()
	for id, other := range map[string]string{"a*x": "a*", "a*\x00": "a*", "b*": "", "b*xx": "b*x", "b*yx": "b*x", "bb*x": "bb*"} {
		t := must(wire.Threshold{ID: id, Task: "mail", Count: 1, Within: lease}.Complete(lease))(w)
		outcome, way, err := w.s.Define(w.Context(), t)
		equal(w, id, must(outcome, err)(w), wire.RefusedEqual)
		if way != other && (other != "" || way != "b*x" && way != "b*y") {
			w.Errorf("%q: %q is in the way, want %q", id, way, other)
		}
	}
	equal(w, "changes", changes(before, w.dump()), "")
	w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: "a*", Count: 2})
	w.undefine("a*")
	w.define(wire.Threshold{ID: "a*x", Count: 1})
}

func defineMatches(w *world) {
	ids := []string{"a", "ab", "aba", "abab", "b", "ba", "a\x00", "a\x00b", "a-b", "a.b", "%", "%%b", "a\nb", "ab\n", "\xff", "a\xffb"}
	for _, pattern := range []string{"a*", "a*b", "ab*ab", "aba*ba", "%*", "%%*b", "a\x00*", "a.*", "a\n*", "\xff*", "a*\n", "[*]", "a*-b"} {
		def := w.define(wire.Threshold{ID: pattern, Count: 9, Within: lease})
		matcher := wire.NewMatcher([]string{def.ID})
		results := w.hitAll(hits(ids...)...)
		for i, id := range ids {
			equal(w, fmt.Sprintf("%q of %q", id, pattern), results[i].Outcome == wire.CountedIt, matcher.Match(id))
			w.cancel(id)
		}
		w.undefine(pattern)
	}
}

func defineCount(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9, Within: lease})
	w.define(wire.Threshold{ID: "d", Count: 3, Within: lease})
	w.hitBy("c", 4)
	w.hitBy("d", 2)
	w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: "c", Count: 3, Within: lease})
	w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: "d", Count: 9, Within: lease})
	equal(w, "not yet", w.fired("n", "mail"), "")
	w.touch("c", "d")
	equal(w, "at the next look", w.fired("n", "mail"), "c threshold 4")
	equal(w, "more", w.hit("d").Threshold, 9)
	w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: "d", Count: 1, Within: lease})
	equal(w, "at the next hit", brief(w.hitAll(hits("d", "d")...)), "4! 1!")
	w.isClosed("d")
}

func defineTask(w *world) {
	for _, id := range []string{"hit", "touch", "cross", "end"} {
		w.define(wire.Threshold{ID: id, Count: 9, Payload: []byte("old")})
	}
	w.hitAll(hits("hit", "touch", "cross", "end")...)
	for _, id := range []string{"hit", "touch", "cross", "end"} {
		w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: id, Count: 9, Task: "bill", Payload: []byte("new")})
	}
	last := w.hit("hit")
	w.touch("touch")
	w.hitBy("cross", 8)
	for _, id := range []string{"hit", "touch"} {
		equal(w, id, []any{w.get(id).Class, w.get(id).Indexed}, []any{"bill new", w.windowOf(id).End})
	}
	equal(w, "the old index", must(w.rdb.ZRange(w.Context(), "keyfuse:due:mail", 0, -1).Result())(w), []string{"end"})
	w.until(last.Ends)
	equal(w, "the old task", w.fired("n", "mail"), "end timeout 1 old") // nobody has looked at it
	equal(w, "the new one", w.fired("n", "bill"), "cross threshold 9 new; hit timeout 2 new; touch timeout 1 new")
	equal(w, "left", w.dumpOf("keyfuse:windows", "keyfuse:open", "keyfuse:due:mail", "keyfuse:due:bill"), "")
}

func defineWithin(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 9})
	first := w.hit("c")
	w.defineAs(wire.DefinedReplaced, wire.Threshold{ID: "c", Count: 9, Within: lease, OnTimeout: wire.TimeoutDrops})
	equal(w, "its end", w.hit("c").Ends, first.Ends)
	w.until(first.Ends)
	equal(w, "dropped", w.fired("n", "mail"), "")
	w.isClosed("c")
	equal(w, "the next", w.hit("c").Ends, w.windowOf("c").Start.Add(lease))
}

func defineOwn(w *world) {
	w.define(wire.Threshold{ID: "p*", Count: 9, Within: lease})
	w.hitAll(hits("p1", "p2")...)
	w.define(wire.Threshold{ID: "p1", Count: 3, Within: lease})
	equal(w, "its own", brief(w.hitAll(hits("p1", "p1", "p1")...)), "2 3! 1")
	equal(w, "open", []int64{w.activity("p*").Open, w.activity("p1").Open}, []int64{1, 1})
	w.cancel("p1")
	w.cancel("p2")
	equal(w, "open", w.dumpOf("keyfuse:open"), "")
}

func defineRemoved(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 3, Payload: []byte("p")})
	w.define(wire.Threshold{ID: "over", Count: 3, Payload: []byte("p"), Task: "bill"})
	w.hitBy("c", 3)
	w.fired("n", "mail")
	last := w.hitAll(wire.Hit{ID: "c", By: 2}, wire.Hit{ID: "over", By: 2})
	w.incr("over", 2)
	w.undefine("c")
	w.undefine("over")
	before := w.dump()
	equal(w, "hits", brief(w.hitAll(hits("c", "over")...)), "N N")
	w.touch("c", "over")
	equal(w, "changes", changes(before, w.dump()), "")
	w.until(last[0].Ends)
	equal(w, "fired", w.fired("n", "mail"), "c timeout 2 p")
	equal(w, "fired", w.fired("n", "bill"), "over threshold 4 p")
	equal(w, "left", w.dumpOf("c", "over", "keyfuse:windows", "keyfuse:open", "keyfuse:firings:c", "keyfuse:firings:over", "keyfuse:thresholds"), "")
}

func TestBadThresholdsSayWhatIsWrong(t *testing.T) {
	good := wire.Threshold{ID: "c", Task: "mail", Count: 1, Within: time.Millisecond}
	if _, err := good.Complete(lease); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*wire.Threshold){
		"bad id":                           func(t *wire.Threshold) { t.ID = "" },
		"reserved":                         func(t *wire.Threshold) { t.ID = "class:*" },
		"bad task name":                    func(t *wire.Threshold) { t.Task = "a b" },
		"has 2 *":                          func(t *wire.Threshold) { t.ID = "a*b*" },
		"begins with *":                    func(t *wire.Threshold) { t.ID = "*" },
		"count is 0":                       func(t *wire.Threshold) { t.Count = 0 },
		"count is -1":                      func(t *wire.Threshold) { t.Count = -1 },
		"at most 9007199254740991":         func(t *wire.Threshold) { t.Count = wire.MaxCount + 1 },
		"window is 0s":                     func(t *wire.Threshold) { t.Within = 0 },
		"window is -1s":                    func(t *wire.Threshold) { t.Within = -time.Second },
		"window is 999.999µs":              func(t *wire.Threshold) { t.Within = time.Millisecond - 1 },
		"window is longer":                 func(t *wire.Threshold) { t.Within = lease + 1 },
		`"burn"`:                           func(t *wire.Threshold) { t.OnTimeout = "burn" },
		`"twice"`:                          func(t *wire.Threshold) { t.Mode = "twice" },
		"-1 items":                         func(t *wire.Threshold) { t.MaxItems = -1 },
		"10001 items":                      func(t *wire.Threshold) { t.MaxItems = wire.MaxItems + 1 },
		"-1 bytes":                         func(t *wire.Threshold) { t.MaxBytes = -1 },
		"1048577 bytes":                    func(t *wire.Threshold) { t.MaxBytes = wire.MaxItemBytes + 1 },
		"debounce is -1s":                  func(t *wire.Threshold) { t.Debounce = -time.Second },
		"debounce is 1µs":                  func(t *wire.Threshold) { t.Debounce = time.Microsecond },
		"only with a debounce":             func(t *wire.Threshold) { t.MaxWait = time.Second },
		"shorter than the debounce of 1s":  func(t *wire.Threshold) { t.Debounce, t.MaxWait = time.Second, time.Minute/61 },
		"1ms is shorter than the debounce": func(t *wire.Threshold) { t.Debounce = time.Second },
		"longest wait is longer":           func(t *wire.Threshold) { t.Debounce, t.MaxWait = time.Second, lease+1 },
	} {
		bad := good
		change(&bad)
		if _, err := bad.Complete(lease); !errors.Is(err, wire.ErrBadThreshold) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", bad, err, want)
		}
	}
}
