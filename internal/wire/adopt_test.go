package wire_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var adoptChecks = []check{
	{"adopt: a bare job is indexed by its remaining time", adoptBare},
	{"adopt: an expired one is due now by event, after the grace by sweep", adoptOrphan},
	{"adopt: what is indexed is known", adoptKnown},
	{"adopt: a fuse that was set again to end earlier is due when it is heard", adoptEarlier},
	{"adopt: an event that is old by now moves nothing", adoptStaleEvent},
	{"adopt: an immortal fuse is counted", adoptImmortal},
	{"adopt: class keys that make no job are refused, with the reason", adoptRefused},
	{"adopt: an id without a class key is nothing", adoptNothing},
	{"adopt: many ids of many tasks", adoptMany},
}

const limit = 1 << 20

func (w *world) adopt(by wire.Finder, grace time.Duration, ids ...string) wire.Adopted {
	w.Helper()
	return must(w.s.Adopt(w.Context(), by, grace, limit, ids))(w)
}

func adoptBare(w *world) {
	w.set("a", "a", w.span)
	w.set("class:a", "mail x", 0)
	equal(w, "sweep", w.adopt(wire.BySweep, 0, "a"), wire.Adopted{Indexed: 1})
	h := w.get("a")
	equal(w, "index", h.Indexed, h.Fuse)
	equal(w, "early", len(w.take("n", "mail")), 0)
	w.until(h.Fuse)
	run := w.takeOne("n", "mail")
	equal(w, "run", []any{run.Source, run.Due, string(run.Payload)}, []any{"index", h.Fuse, "x"})
}

func adoptOrphan(w *world) {
	w.set("class:heard", "mail", 0)
	w.set("class:swept", "mail", 0)
	equal(w, "event", w.adopt(wire.ByEvent, w.span, "heard"), wire.Adopted{Indexed: 1})
	equal(w, "sweep", w.adopt(wire.BySweep, w.span, "swept"), wire.Adopted{Indexed: 1})
	due := w.get("swept").Indexed
	if wait := due.Sub(w.now()); wait > w.span || wait < w.span/4 {
		w.Errorf("the orphan is due in %s, want %s", wait, w.span)
	}
	equal(w, "heard", w.takeOne("n", "mail").Source, "event")
	w.until(due.Add(time.Millisecond))
	equal(w, "swept", w.takeOne("n", "mail").Source, "sweep")
}

func adoptKnown(w *world) {
	w.armNew(job("a", "mail", lease), job("now", "mail", 0))
	before := w.dump()
	equal(w, "sweep", w.adopt(wire.BySweep, 0, "a", "now"), wire.Adopted{Known: 2})
	equal(w, "event", w.adopt(wire.ByEvent, 0, "now"), wire.Adopted{Known: 1})
	equal(w, "changes", changes(before, w.dump()), "")
}

func adoptEarlier(w *world) {
	w.armNew(job("a", "mail", lease))
	w.set("a", "again", w.span)
	w.pass(w.span + 2*time.Millisecond)
	equal(w, "event", w.adopt(wire.ByEvent, 0, "a"), wire.Adopted{Indexed: 1})
	equal(w, "taken", w.takeOne("n", "mail").ID, "a")
}

func adoptStaleEvent(w *world) {
	w.armNew(job("a", "mail", w.span))
	due := w.get("a").Fuse
	w.adopt(wire.ByEvent, 0, "a")
	h := w.get("a")
	equal(w, "due", []time.Time{h.Fuse, h.Indexed}, []time.Time{due, due})
}

func adoptImmortal(w *world) {
	w.set("a", "a", 0)
	w.set("class:a", "mail", 0)
	for _, by := range []wire.Finder{wire.ByEvent, wire.BySweep} {
		equal(w, string(by), w.adopt(by, 0, "a"), wire.Adopted{Immortal: 1})
	}
	equal(w, "index", w.get("a").Indexed.IsZero(), true)
}

func adoptRefused(w *world) {
	w.set("class:empty", "", 0)
	w.set("class:space", " mail", 0)
	w.set("class:hostile", "ma\x00il x", 0)
	w.set("class:long", strings.Repeat("x", 129), 0)
	w.set("class:big", "mail "+strings.Repeat("x", limit+1), 0)
	w.set("class:exact", "mail "+strings.Repeat("x", limit), 0)
	must(w.rdb.SAdd(w.Context(), "class:set", "mail").Result())(w)
	for id, why := range map[string]string{
		"empty": "its value begins with no task name", "space": "its value begins with no task name",
		"hostile": "its value begins with no task name", "long": "its value begins with no task name",
		"big": "its payload is over the limit", "set": "it is no string",
	} {
		equal(w, id, w.adopt(wire.BySweep, 0, id), wire.Adopted{Refused: 1, Example: id, Why: why})
	}
	equal(w, "set, by event", w.adopt(wire.ByEvent, 0, "set"), wire.Adopted{})
	found := w.adopt(wire.BySweep, 0, "empty", "exact", "big")
	equal(w, "together", []int{found.Indexed, found.Refused}, []int{1, 2})
	equal(w, "pending", w.counts("mail").Pending, 1)
}

func adoptNothing(w *world) {
	w.set("fuse only", "x", w.span)
	before := w.dump()
	equal(w, "sweep", w.adopt(wire.BySweep, 0, "fuse only", "nothing", "\x00"), wire.Adopted{})
	equal(w, "event", w.adopt(wire.ByEvent, 0, "fuse only", "nothing", "\x00"), wire.Adopted{})
	equal(w, "changes", changes(before, w.dump()), "")
}

func adoptMany(w *world) {
	all := make([]string, wire.MaxAdopt)
	pairs := make([]any, 0, 2*len(all))
	for i := range all {
		all[i] = fmt.Sprint("id ", i)
		pairs = append(pairs, "class:"+all[i], fmt.Sprintf("task-%d payload", i%9))
	}
	must(w.rdb.MSet(w.Context(), pairs...).Result())(w)
	equal(w, "adopted", w.adopt(wire.ByEvent, 0, all...), wire.Adopted{Indexed: wire.MaxAdopt})
	equal(w, "again", w.adopt(wire.BySweep, 0, all...), wire.Adopted{Known: wire.MaxAdopt})
}
