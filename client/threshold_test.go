package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
)

var thresholdChecks = []check{
	{"threshold: new, the same, replaced; with its defaults filled in", thresholdDefines},
	{"threshold: what is wrong with one is said, and nothing is written", thresholdRefuses},
	{"threshold: the limits themselves are allowed", thresholdLimits},
	{"threshold: two patterns that could match one key are refused", thresholdEqualPatterns},
	{"threshold: removed, it counts nothing, and its window ends as it would have", thresholdRemoves},
	{"threshold: shows its window and its last firings", thresholdShows},
	{"threshold: a pattern shows how many windows are open", thresholdShowsPattern},
	{"threshold: all of them, in order", thresholdsInOrder},
	{"threshold: one that can't be read hides no other, and can be removed", thresholdUnreadable},
	{"threshold: an error of Redis is passed on", thresholdBroken},
	{"threshold: replaced, its open window goes on by the new one", thresholdReplacedWhileOpen},
	{"window: a pending job that get and list show", windowListed},
	{"window: its run tells the count and the reason", windowRuns},
	{"window: no job can be scheduled in its place, or its end be moved", windowHeld},
	{"window: fired by hand, with the count that it has", windowFired},
	{"window: cancelled, it is gone with its hits", windowCancelled},
}

// counter is a threshold whose windows stay open for as long as a test runs.
func counter(id string, count int64) client.Threshold {
	return client.Threshold{ID: id, Task: "mail", Payload: []byte("hi"), Count: count, Within: time.Hour}
}

func (w *world) define(all ...client.Threshold) {
	w.Helper()
	for _, t := range all {
		must(w.c.DefineThreshold(w.Context(), t))(w)
	}
}

// keys are how many there are.
func (w *world) keys() int64 {
	w.Helper()
	return must(w.rdb.DBSize(w.Context()).Result())(w)
}

func thresholdDefines(w *world) {
	t := client.Threshold{ID: "c\x00\xff", Task: "mail", Payload: []byte("a \n\x00\xff"), Count: 3, Within: time.Minute + 1}
	for _, want := range []client.Defined{client.DefinedNew, client.DefinedSame} {
		equal(w, "outcome", must(w.c.DefineThreshold(w.Context(), t))(w), want)
	}
	want := t
	want.Within = time.Minute + time.Millisecond
	want.OnTimeout, want.Mode, want.MaxItems, want.MaxBytes = client.TimeoutFires, client.Repeat, 1000, 256<<10
	equal(w, "held", must(w.c.Threshold(w.Context(), t.ID))(w), client.ThresholdInfo{Threshold: want})

	t = client.Threshold{
		ID: t.ID, Task: "bill", Count: 1 << 40, Within: time.Minute, OnTimeout: client.TimeoutDrops, Mode: client.Once,
		Debounce: time.Second, MaxItems: 7, MaxBytes: 99,
	}
	equal(w, "outcome", must(w.c.DefineThreshold(w.Context(), t))(w), client.DefinedReplaced)
	t.MaxWait = time.Minute
	equal(w, "held", must(w.c.Threshold(w.Context(), t.ID))(w), client.ThresholdInfo{Threshold: t})
}

// refusedThresholds spoil a good one.
var refusedThresholds = map[string]func(t *client.Threshold){
	"no id":                          func(t *client.Threshold) { t.ID = "" },
	"the id is too long":             func(t *client.Threshold) { t.ID = strings.Repeat("x", 513) },
	"the id is a mapping":            func(t *client.Threshold) { t.ID = "class:a" },
	"the id is internal":             func(t *client.Threshold) { t.ID = "keyfuse:a*" },
	"a pattern of all keys":          func(t *client.Threshold) { t.ID = "*" },
	"a pattern without a prefix":     func(t *client.Threshold) { t.ID = "*:a" },
	"a pattern with two stars":       func(t *client.Threshold) { t.ID = "a*b*" },
	"no task":                        func(t *client.Threshold) { t.Task = "" },
	"a space in the task":            func(t *client.Threshold) { t.Task = "a b" },
	"the payload is too long":        func(t *client.Threshold) { t.Payload = make([]byte, client.DefaultMaxPayload+1) },
	"no count":                       func(t *client.Threshold) { t.Count = 0 },
	"a negative count":               func(t *client.Threshold) { t.Count = -1 },
	"a count that Lua can't keep":    func(t *client.Threshold) { t.Count = 1 << 53 },
	"no window":                      func(t *client.Threshold) { t.Within = 0 },
	"a negative window":              func(t *client.Threshold) { t.Within = -time.Hour },
	"a window below a millisecond":   func(t *client.Threshold) { t.Within = time.Millisecond - 1 },
	"a window of over ten years":     func(t *client.Threshold) { t.Within = client.MaxDelay + 1 },
	"an unknown end":                 func(t *client.Threshold) { t.OnTimeout = "explode" },
	"an unknown mode":                func(t *client.Threshold) { t.Mode = "twice" },
	"a negative debounce":            func(t *client.Threshold) { t.Debounce = -1 },
	"a debounce below a millisecond": func(t *client.Threshold) { t.Debounce = 1 },
	"a wait without a debounce":      func(t *client.Threshold) { t.MaxWait = time.Minute },
	"a wait below the debounce":      func(t *client.Threshold) { t.Debounce, t.MaxWait = time.Minute, time.Second },
	"a window below the debounce":    func(t *client.Threshold) { t.Debounce = 2 * time.Hour },
	"a wait of over ten years":       func(t *client.Threshold) { t.Debounce, t.MaxWait = time.Minute, client.MaxDelay+1 },
	"a negative wait":                func(t *client.Threshold) { t.MaxWait = -1 },
	"a negative number of items":     func(t *client.Threshold) { t.MaxItems = -1 },
	"too many items":                 func(t *client.Threshold) { t.MaxItems = 10_001 },
	"a negative number of bytes":     func(t *client.Threshold) { t.MaxBytes = -1 },
	"too many bytes of items":        func(t *client.Threshold) { t.MaxBytes = 1<<20 + 1 },
}

func thresholdRefuses(w *world) {
	for what, spoil := range refusedThresholds {
		t := counter("c", 3)
		spoil(&t)
		if _, err := w.c.DefineThreshold(w.Context(), t); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("%s: %v", what, err)
		}
	}
	small := w.client(client.Config{MaxPayload: 1})
	if _, err := small.DefineThreshold(w.Context(), counter("c", 3)); !errors.Is(err, client.ErrInvalid) {
		w.Errorf("a payload over the limit: %v", err)
	}
	prefixed := w.client(client.Config{IDPrefix: "jobs:"})
	for _, id := range []string{"c", "job*"} {
		if _, err := prefixed.DefineThreshold(w.Context(), counter(id, 3)); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("%q without the prefix: %v", id, err)
		}
	}
	equal(w, "keys", w.keys(), 0)
	must(prefixed.DefineThreshold(w.Context(), counter("jobs:*", 3)))(w)
}

func thresholdLimits(w *world) {
	most := client.Threshold{
		ID: strings.Repeat("x", 511) + "*", Task: strings.Repeat("t", 128), Payload: []byte(strings.Repeat("x", client.DefaultMaxPayload)),
		Count: 1<<53 - 1, Within: client.MaxDelay, Debounce: client.MaxDelay, MaxWait: client.MaxDelay, MaxItems: 10_000, MaxBytes: 1 << 20,
	}
	least := client.Threshold{
		ID: "x", Task: "t", Count: 1, Within: time.Millisecond, Debounce: time.Millisecond, MaxWait: time.Millisecond, MaxItems: 1, MaxBytes: 1,
	}
	w.define(most, least)
	for _, t := range []client.Threshold{most, least} {
		t.OnTimeout, t.Mode = client.TimeoutFires, client.Repeat
		info := must(w.c.Threshold(w.Context(), t.ID))(w)
		equal(w, "payload", string(info.Payload) == string(t.Payload), true)
		info.Payload, t.Payload = nil, nil // too long to print
		equal(w, t.ID, info, client.ThresholdInfo{Threshold: t})
	}
	equal(w, "counted", w.hit(strings.Repeat("x", 512)).Count, 1)
}

func thresholdEqualPatterns(w *world) {
	w.define(counter("login:*", 3), counter("a:*:x", 3))
	for _, id := range []string{"login:*:eu", "a:*", "a:*:y:x"} {
		outcome, err := w.c.DefineThreshold(w.Context(), counter(id, 5))
		if !errors.Is(err, client.ErrEqualPattern) || !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) || outcome != 0 {
			w.Errorf("%q: %v, %v", id, outcome, err)
		}
	}
	w.define(counter("login:a*", 4), counter("a:*:y", 4), counter("login:1", 5))
	for id, want := range map[string]int64{"login:1": 5, "login:2": 3, "login:a": 4, "login:": 3, "a:b:x": 3, "a:b:y": 4, "a::x": 3} {
		equal(w, id, w.hit(id).Threshold, want)
	}
	for _, id := range []string{"login", "a:b:z", "a:x"} {
		w.refused(client.Hit{ID: id}, client.ErrNoThreshold)
	}
}

func thresholdRemoves(w *world) {
	w.define(counter("c", 3), counter("p:*", 3))
	w.hit("c")
	for _, id := range []string{"c", "p:*"} {
		must(0, w.c.RemoveThreshold(w.Context(), id))(w)
		for range 2 {
			if err := w.c.RemoveThreshold(w.Context(), id); !errors.Is(err, client.ErrNoThreshold) {
				w.Errorf("again: %v", err)
			}
			if _, err := w.c.Threshold(w.Context(), id); !errors.Is(err, client.ErrNoThreshold) {
				w.Errorf("read: %v", err)
			}
		}
	}
	w.refused(client.Hit{ID: "c"}, client.ErrNoThreshold)
	w.refused(client.Hit{ID: "p:1"}, client.ErrNoThreshold)
	equal(w, "all", len(must(w.c.Thresholds(w.Context()))(w)), 0)
	job := must(w.c.Get(w.Context(), "c"))(w)[0]
	equal(w, "open", []any{job.Window.Count, job.Window.Definition}, []any{1, "c"})
	must(w.c.Fire(w.Context(), "c"))(w)
	equal(w, "fired", w.claim("mail")[0].Count, 1)
}

func thresholdShows(w *world) {
	w.define(counter("c", 2))
	for range 12 {
		w.hit("c")
		w.hit("c")
	}
	w.hitWith(client.Hit{ID: "c", By: 5})
	before := w.now().Truncate(time.Millisecond)
	first := w.hit("c")
	info := must(w.c.Threshold(w.Context(), "c"))(w)
	window := *info.Window
	if window.Start.Before(before) || !window.End.Equal(window.Start.Add(time.Hour)) || !window.End.Equal(first.Ends) {
		w.Errorf("open from %s, a hit of it said until %s; the hit was after %s", window.Start, first.Ends, before)
	}
	equal(w, "window", window, client.Window{Start: window.Start, End: window.End, Count: 1, Threshold: 2, Definition: "c"})
	equal(w, "open", info.Open, 1)
	equal(w, "firings", len(info.Fired), 10)
	for i, fired := range info.Fired {
		want := client.Fired{At: fired.At, Reason: "threshold", Count: 2, ID: "c"}
		if i == 0 {
			want.Count = 5
		}
		equal(w, "fired", fired, want)
	}
	must(w.c.Fire(w.Context(), "c"))(w)
	info = must(w.c.Threshold(w.Context(), "c"))(w)
	equal(w, "nothing open", []any{info.Open, info.Window}, []any{0, (*client.Window)(nil)})
	equal(w, "fired", []any{info.Fired[0].Reason, info.Fired[0].Count}, []any{"manual", 1})
}

func thresholdShowsPattern(w *world) {
	w.define(counter("p:*", 2))
	for _, id := range []string{"p:a", "p:b b", "p:c", "p:c"} {
		w.hit(id)
	}
	// A key may be named like a pattern: then other clients can count it.
	must(w.rdb.Incr(w.Context(), w.fuse("p:*")).Result())(w)
	must(w.space.Of("p:*").Touch(w.Context(), []string{"p:*"}))(w)
	info := must(w.c.Threshold(w.Context(), "p:*"))(w)
	equal(w, "pattern", []any{info.Open, info.Window, len(info.Fired), info.Fired[0].ID}, []any{3, (*client.Window)(nil), 1, "p:c"})
}

func thresholdsInOrder(w *world) {
	equal(w, "none", len(must(w.c.Thresholds(w.Context()))(w)), 0)
	w.define(counter("c", 1), counter("a*", 2), counter("\xff", 3), counter("b", 4))
	w.hit("b")
	var got []string
	for _, info := range must(w.c.Thresholds(w.Context()))(w) {
		got = append(got, fmt.Sprintf("%q %d %d", info.ID, info.Count, info.Open))
	}
	equal(w, "all", got, []string{`"a*" 2 0`, `"b" 4 1`, `"c" 1 0`, `"\xff" 3 0`})
}

func thresholdUnreadable(w *world) {
	w.define(counter("a", 1), counter("c", 1))
	must(w.rdb.HSet(w.Context(), w.space.Of("b").Of("thresholds"), "b", "?").Result())(w)
	all, err := w.c.Thresholds(w.Context())
	if err == nil || !strings.Contains(err.Error(), `"b"`) {
		w.Errorf("got %v", err)
	}
	equal(w, "the others", []any{len(all), all[0].ID, all[1].ID}, []any{2, "a", "c"})
	if _, err := w.c.Threshold(w.Context(), "b"); err == nil || errors.Is(err, client.ErrNoThreshold) {
		w.Errorf("got %v", err)
	}
	must(0, w.c.RemoveThreshold(w.Context(), "b"))(w)
	must(w.c.Thresholds(w.Context()))(w)
}

func thresholdBroken(w *world) {
	w.define(counter("c", 1))
	broken := newFailing(0, errors.New("gone"))
	w.rdb.AddHook(broken)
	_, defined := w.c.DefineThreshold(w.Context(), counter("c", 2))
	_, one := w.c.Threshold(w.Context(), "c")
	_, all := w.c.Thresholds(w.Context())
	_, hit := w.c.Hit(w.Context(), client.Hit{ID: "c"})
	for what, err := range map[string]error{
		"define": defined, "remove": w.c.RemoveThreshold(w.Context(), "c"), "one": one, "all": all, "hit": hit,
	} {
		if !errors.Is(err, broken.err) {
			w.Errorf("%s: %v", what, err)
		}
	}
}

func thresholdReplacedWhileOpen(w *world) {
	w.define(counter("c", 10))
	first := w.hit("c")
	other := counter("c", 3)
	other.Task, other.Within = "bill", time.Minute
	w.define(other)
	second := w.hit("c")
	equal(w, "second", second, client.Counted{ID: "c", Count: 2, Threshold: 3, Ends: second.Ends})
	equal(w, "end", second.Ends.Equal(first.Ends), true)
	equal(w, "task", must(w.c.Get(w.Context(), "c"))(w)[0].Task, "bill")
	equal(w, "third", w.hit("c").Fired, true)
	equal(w, "fired", []int{len(w.claim("mail")), len(w.claim("bill"))}, []int{0, 1})
}

func windowListed(w *world) {
	w.define(counter("p:*", 3))
	counted := w.hitWith(client.Hit{ID: "p:1", By: 2, Item: "x"})
	window := must(w.c.Get(w.Context(), "p:1"))(w)[0].Window
	equal(w, "window", *window, client.Window{Start: window.Start, End: counted.Ends, Count: 2, Threshold: 3, Items: 1, Definition: "p:*"})
	want := client.Job{ID: "p:1", Task: "mail", State: client.Pending, Payload: []byte("hi"), Due: counted.Ends, Window: window}
	for _, job := range slices.Concat(must(w.c.Get(w.Context(), "p:1"))(w), must(w.c.List(w.Context(), client.Filter{}, "", 10))(w).Jobs) {
		equal(w, "trigger", job.Trigger(), "threshold")
		equal(w, "window", *job.Window, *window)
		job.Window = window
		equal(w, "job", job, want)
	}
	w.schedule(client.Spec{ID: "timer", Task: "mail", In: time.Hour})
	equal(w, "timer", must(w.c.Get(w.Context(), "timer"))(w)[0].Trigger(), "timer")
	equal(w, "stats", must(w.c.Stats(w.Context()))(w).Tasks, []client.TaskStats{{Task: "mail", Pending: 2}})
}

func windowRuns(w *world) {
	w.define(counter("c", 2))
	w.hitWith(client.Hit{ID: "c", By: 5})
	w.hit("c")
	jobs := must(w.c.Get(w.Context(), "c"))(w)
	equal(w, "held", len(jobs), 2)
	equal(w, "open", jobs[0].Window.Count, 1)
	run := jobs[1]
	equal(w, "waits", []any{run.State, run.Attempt, run.Count, run.Reason, run.Source, run.Trigger(), run.Window},
		[]any{client.Retrying, 0, 5, "threshold", "threshold", "threshold", (*client.Window)(nil)})
	equal(w, "claimed", []any{w.claim("mail")[0].RunID, w.claim("mail")}, []any{run.RunID, []any(nil)})
	run = must(w.c.List(w.Context(), client.Filter{State: client.Running}, "", 10))(w).Jobs[0]
	equal(w, "runs", []any{run.ID, run.Attempt, run.Count, run.Reason, string(run.Payload), run.Trigger()},
		[]any{"c", 1, 5, "threshold", "hi", "threshold"})
}

func windowHeld(w *world) {
	w.define(counter("c", 3))
	counted := w.hit("c")
	for _, mode := range []client.IfExists{client.Fail, client.Keep, client.Replace} {
		_, err := w.c.Schedule(w.Context(), client.Spec{ID: "c", Task: "mail", IfExists: mode})
		if !errors.Is(err, client.ErrCounting) {
			w.Errorf("schedule, %s: %v", mode, err)
		}
	}
	for _, in := range []time.Duration{0, time.Minute} {
		if _, err := w.c.Reschedule(w.Context(), "c", in, time.Time{}); !errors.Is(err, client.ErrCounting) {
			w.Errorf("reschedule in %s: %v", in, err)
		}
	}
	equal(w, "next", w.hit("c"), client.Counted{ID: "c", Count: 2, Threshold: 3, Ends: counted.Ends})
}

func windowFired(w *world) {
	once := counter("once", 1)
	once.Mode = client.Once
	w.define(counter("c", 3), once)
	w.hitWith(client.Hit{ID: "c", By: 2})
	job := must(w.c.Fire(w.Context(), "c"))(w)
	equal(w, "job", []any{job.Task, job.State, job.RunID != ""}, []any{"mail", client.Retrying, true})
	run := w.claim("mail")[0]
	equal(w, "run", []any{run.RunID, run.Count, run.Reason}, []any{job.RunID, 2, "manual"})
	equal(w, "the next window", w.hit("c").Count, 1)

	w.hit("once")
	if _, err := w.c.Fire(w.Context(), "once"); !errors.Is(err, client.ErrCounting) {
		w.Errorf("fired twice: %v", err)
	}
	equal(w, "runs", len(w.claim("mail")), 1)
}

func windowCancelled(w *world) {
	w.define(counter("c", 3))
	before := w.keys()
	w.hitWith(client.Hit{ID: "c", By: 2, Item: "x"})
	must(0, w.c.Cancel(w.Context(), "c"))(w)
	if _, err := w.c.Get(w.Context(), "c"); !errors.Is(err, client.ErrNotFound) {
		w.Errorf("got %v", err)
	}
	equal(w, "open", must(w.c.Threshold(w.Context(), "c"))(w).Open, 0)
	equal(w, "counter", must(w.rdb.Exists(w.Context(), w.fuse("c"), w.class("c")).Result())(w), 0)
	equal(w, "keys but the tokens", w.keys()-must(w.rdb.Exists(w.Context(), w.space.Of("c").Of("counted"), w.space.Of("c").Of("counted_until")).Result())(w), before)
	counted := w.hitWith(client.Hit{ID: "c", By: 3})
	equal(w, "the next window", []any{counted.Count, counted.Fired, string(w.claim("mail")[0].Payload)}, []any{3, true, "hi"})
}
