package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var itemChecks = []check{
	{"items: come to the handler in order, as a document", itemsInOrder},
	{"items: go to the window in which they were hit", itemsOfWindow},
	{"items: of a window that ends by time, by hand, by a hit or a look", itemsAtEnd},
	{"items: no more than max_items, else the hit is refused", itemsMany},
	{"items: no more than max_bytes, else the hit is refused", itemsLong},
	{"items: any text and any payload make valid JSON", itemsHostile},
	{"items: in mode once those behind the firing are left out", itemsOnce},
	{"items: a window without any has the plain payload", itemsNone},
}

// document is what a handler of a window with items reads.
type document struct {
	Count         int64     `json:"count"`
	Reason        string    `json:"reason"`
	WindowStart   string    `json:"window_start"`
	WindowEnd     string    `json:"window_end"`
	Payload       *string   `json:"payload"`
	PayloadBase64 []byte    `json:"payload_base64"`
	Items         []string  `json:"items"`
	Start, End    time.Time `json:"-"`
}

func item(id, text string) wire.Hit { return wire.Hit{ID: id, By: 1, Item: wire.JSONString(text)} }

// documents are those of all runs that can be claimed, checked against the runs.
func (w *world) documents(task string) []document {
	w.Helper()
	runs := w.take("n", task)
	docs := make([]document, len(runs))
	for i, run := range runs {
		dec := json.NewDecoder(strings.NewReader(string(run.Payload)))
		dec.DisallowUnknownFields()
		d := &docs[i]
		if err := dec.Decode(d); err != nil {
			w.Fatalf("%v: %q", err, run.Payload)
		}
		equal(w, "count, reason", fmt.Sprint(d.Count, d.Reason), fmt.Sprint(run.Count, run.Reason))
		for _, at := range []struct {
			text string
			time *time.Time
		}{{d.WindowStart, &d.Start}, {d.WindowEnd, &d.End}} {
			*at.time = must(time.Parse(time.RFC3339, at.text))(w)
			equal(w, "as Go writes it", at.text, at.time.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		equal(w, "window end", d.End.UnixMilli(), run.Due.UnixMilli())
	}
	return docs
}

func (w *world) document(task string) document {
	w.Helper()
	docs := w.documents(task)
	if len(docs) != 1 {
		w.Fatalf("%d documents, want one", len(docs))
	}
	return docs[0]
}

func itemsInOrder(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 5, Payload: []byte("a b"), Within: lease})
	w.hitAll(item("c", "1"))
	w.hitAll(item("c", "3"), hits("c")[0], item("c", "2"))
	start := w.windowOf("c").Start
	equal(w, "items", w.windowOf("c").Items, 3)
	w.hitAll(item("c", "1"))
	doc := w.document("mail")
	equal(w, "document", fmt.Sprint(doc.Count, doc.Reason, doc.Items, *doc.Payload), "5threshold[1 3 2 1]a b")
	equal(w, "start", doc.Start.UnixMilli(), start.UnixMilli())
	if doc.End.Before(doc.Start) || doc.End.After(w.now()) {
		w.Errorf("a window from %s to %s", doc.Start, doc.End)
	}
	w.isClosed("c")
}

func itemsOfWindow(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2, Within: lease})
	w.hitAll(item("c", "a"))
	w.hitAll(item("c", "b"), item("c", "c"), item("c", "d"), item("c", "e"))
	docs := w.documents("mail")
	equal(w, "documents", len(docs), 2)
	equal(w, "items", fmt.Sprint(docs[0].Items, docs[1].Items), "[a b] [c d]")
	w.hitAll(item("c", "f"), item("c", "g"))
	docs = w.documents("mail")
	equal(w, "items", docs[0].Items, []string{"e", "f"})
	equal(w, "open", w.windowOf("c").Items, 1)
}

func itemsAtEnd(w *world) {
	for _, id := range []string{"claim", "hit", "touch", "drop", "fire"} {
		t := wire.Threshold{ID: id, Count: 9, Task: id}
		if id == "drop" {
			t.OnTimeout = wire.TimeoutDrops
		}
		w.define(t)
	}
	old := w.hitAll(item("claim", "x"), item("hit", "x"), item("touch", "x"), item("drop", "x"), item("fire", "x"))
	must(w.s.Move(w.Context(), "fire", wire.When{}, true))(w)
	w.until(old[4].Ends)
	w.hitAll(item("hit", "y"), item("drop", "y"))
	w.touch("touch")
	for _, id := range []string{"claim", "hit", "touch", "fire"} {
		doc := w.document(id)
		reason := "timeout"
		if id == "fire" {
			reason = "manual"
		} else {
			equal(w, "end", doc.End.Sub(doc.Start), w.within())
		}
		equal(w, id, fmt.Sprint(doc.Count, doc.Reason, doc.Items), "1"+reason+"[x]")
	}
	equal(w, "left", w.dumpOf("keyfuse:items:claim", "keyfuse:items:touch", "keyfuse:items:fire"), "")
	w.until(w.windowOf("drop").End)
	w.take("n", "drop")
	equal(w, "the next", w.document("hit").Items, []string{"y"})
	equal(w, "left", w.dumpOf("keyfuse:items:hit", "keyfuse:items:drop"), "")
}

func itemsMany(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 5, MaxItems: 2, Within: lease})
	equal(w, "in one call", brief(w.hitAll(item("c", "a"), item("c", "b"), item("c", "c"))), "1 2 I")
	before := w.dump()
	equal(w, "in another", brief(w.hitAll(item("c", "c"))), "I")
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "without", brief(w.hitAll(hits("c", "c")...)), "3 4")
	equal(w, "the last", brief(w.hitAll(item("c", "d"), hits("c")[0], item("c", "e"))), "I 5! 1")
	equal(w, "items", w.document("mail").Items, []string{"a", "b"})
}

func itemsLong(w *world) {
	w.define(wire.Threshold{ID: "d", Count: 9, MaxBytes: 1, Within: lease, Debounce: 5 * w.span})
	start := w.hit("d").Ends
	w.until(start.Add(-4 * w.span))
	equal(w, "with debounce", brief(w.hitAll(item("d", "x"), hits("d")[0])), "B 2")
	if moved := w.windowOf("d").End; !moved.After(start) {
		w.Errorf("the hit behind one that was refused did not move the end: %s", moved)
	}
	w.cancel("d")
	w.define(wire.Threshold{ID: "c", Count: 9, MaxBytes: 10, Within: lease})
	before := w.state()
	equal(w, "one", brief(w.hitAll(item("c", "12345678"))), "B") // and two quotes and a comma
	equal(w, "changes", changes(before, w.state()), "")
	equal(w, "in one call", brief(w.hitAll(item("c", "12"), item("c", "123"), item("c", "12"), hits("c")[0])), "1 B 2 3")
	middle := w.dump()
	equal(w, "in another", brief(w.hitAll(item("c", ""))), "B")
	equal(w, "changes", changes(middle, w.dump()), "")
	equal(w, "the last", brief(w.hitAll(wire.Hit{ID: "c", By: 6}, item("c", "1234567"))), "9! 1")
	equal(w, "items", w.document("mail").Items, []string{"12", "12"})
}

func itemsHostile(w *world) {
	texts := []string{
		"", `"`, `\`, `\u0000`, "\x00", "\n\r\t", "]}", `","x":"`, "</script>&", "\u2028\u2029", "é😀", "%d%s%1", strings.Repeat("x", 5000), "\x7f\x01\x1f",
	}
	for i, payload := range append(texts, "\xff", "a\xc3", "\xed\xa0\x80") {
		id := fmt.Sprint("c", i)
		w.define(wire.Threshold{ID: id, Count: int64(len(texts)), Payload: []byte(payload), Within: lease})
		var all []wire.Hit
		for _, text := range texts {
			all = append(all, item(id, text))
		}
		w.hitAll(all...)
		doc := w.document("mail")
		equal(w, "items", fmt.Sprintf("%q", doc.Items), fmt.Sprintf("%q", texts))
		got := string(doc.PayloadBase64)
		if doc.Payload != nil {
			got = *doc.Payload
		}
		equal(w, "payload", got, payload)
		equal(w, "as text", doc.Payload != nil, i < len(texts) && payload != "")
	}
}

func itemsOnce(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2, Mode: wire.Once, MaxItems: 2, MaxBytes: 9})
	w.hitAll(item("c", "a"))
	last := w.hitAll(item("c", "b"), item("c", "c"), item("c", "d"))
	equal(w, "results", brief(last), "2! 3 4")
	equal(w, "after", brief(w.hitAll(item("c", "longer than max_bytes"))), "5")
	equal(w, "left", w.dumpOf("keyfuse:items:c"), "")
	equal(w, "items", w.document("mail").Items, []string{"a", "b"})
	w.until(last[0].Ends)
	w.hitAll(item("c", "f"), item("c", "g"))
	equal(w, "the next", w.document("mail").Items, []string{"f", "g"})
}

func itemsNone(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2, Payload: []byte(" p \xff"), Within: lease})
	w.hitAll(hits("c", "c")...)
	equal(w, "payload", string(w.takeOne("n", "mail").Payload), " p \xff")
	w.hitAll(item("c", "x"))
	w.cancel("c")
	w.hitAll(hits("c", "c")...)
	equal(w, "of another window", string(w.takeOne("n", "mail").Payload), " p \xff")
}
