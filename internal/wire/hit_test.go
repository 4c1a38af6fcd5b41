package wire_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var hitChecks = []check{
	{"hit: the first opens a window, the Nth fires and closes it", hitFires},
}

// define defines a threshold that must be new.
func (w *world) define(t wire.Threshold) wire.Threshold {
	w.Helper()
	if t.Within == 0 {
		t.Within = w.span
	}
	t, err := t.Complete(lease)
	must(t, err)(w)
	outcome, other, err := w.s.Define(w.Context(), t)
	if must(outcome, err)(w) != wire.DefinedNew {
		w.Fatalf("defining %q: outcome %d, %q in the way", t.ID, outcome, other)
	}
	return t
}

func (w *world) hitAll(hits ...wire.Hit) []wire.HitResult {
	w.Helper()
	results, err := w.s.Hit(w.Context(), wire.NewToken(), hits)
	return must(results, err)(w)
}

func (w *world) hit(id string) wire.HitResult {
	w.Helper()
	return w.hitAll(wire.Hit{ID: id, By: 1})[0]
}

// fired are the firings that a node can claim of a task, as "id reason count payload".
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
	return strings.Join(lines, "; ")
}

func hitFires(w *world) {
	w.define(wire.Threshold{ID: "c", Task: "mail", Payload: []byte("hello you"), Count: 3})
	now := w.now()
	first := w.hit("c")
	if first.Ends.Before(now.Add(w.span).Truncate(time.Millisecond)) {
		w.Errorf("the window ends %s, before its time", first.Ends)
	}
	equal(w, "first", first, wire.HitResult{Count: 1, Threshold: 3, Ends: first.Ends})
	h := w.get("c")
	equal(w, "class", h.Class, "mail hello you")
	equal(w, "due", []time.Time{h.Due(), h.Indexed}, []time.Time{first.Ends, first.Ends})
	equal(w, "second", w.hit("c"), wire.HitResult{Count: 2, Threshold: 3, Ends: first.Ends})
	equal(w, "third", w.hit("c"), wire.HitResult{Count: 3, Threshold: 3, Fired: true, Ends: first.Ends})
	equal(w, "fired", w.fired("n", "mail"), "c threshold 3 hello you")
	equal(w, "left", w.dumpOf("c", "class:c", "keyfuse:windows", "keyfuse:open"), "")
	equal(w, "the next", w.hit("c").Count, 1)
	w.pass(w.span + time.Millisecond)
	equal(w, "fired", w.fired("n", "mail"), "c timeout 1 hello you")
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
