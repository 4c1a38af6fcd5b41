package wire_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

func hitAgain(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 2, Within: lease})
	w.define(wire.Threshold{ID: "d", Count: 9, Within: lease})
	token := wire.NewToken()
	equal(w, "refused", brief(w.hitWith(token, hits("later")...)), "N")
	first := w.hitWith(token, hits("c", "none", "d", "c")...) // what was only refused may be tried again
	equal(w, "first", brief(first), "1 N 1 2!")
	before := w.dump()
	equal(w, "again", w.hitWith(token, hits("c", "none", "d", "c")...), first)
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "another", brief(w.hitAll(hits("c", "d")...)), "1 2")
	w.take("n", "mail")
	before = w.dump()
	equal(w, "long after", w.hitWith(token, hits("c", "none", "d", "c")...), first)
	equal(w, "changes", changes(before, w.dump()), "")
	if !w.real {
		w.pass(wire.KeepToken)
		equal(w, "forgotten", brief(w.hitWith(token, hits("d")...)), "3")
		w.pass(wire.KeepToken + time.Millisecond)
		equal(w, "left", w.dumpOf("keyfuse:counted", "keyfuse:counted_until"), "")
		w.hit("d")
	}
	for _, key := range []string{"keyfuse:counted", "keyfuse:counted_until"} {
		if ttl := must(w.rdb.PTTL(w.Context(), key).Result())(w); ttl <= 0 || ttl > wire.KeepToken {
			w.Errorf("%s is kept for %s, want at most %s", key, ttl, wire.KeepToken)
		}
	}
}

// A call that one script was not enough for is known as a whole.
func hitManyAgain(w *world) {
	w.define(wire.Threshold{ID: "p:*", Count: 9, Within: lease})
	var ids []string
	for i := range wire.MaxHits {
		ids = append(ids, fmt.Sprint("p:", i))
	}
	token := wire.NewToken()
	first := w.hitWith(token, hits(ids...)...)
	before := w.dump()
	equal(w, "again", w.hitWith(token, hits(ids...)...), first)
	equal(w, "changes", changes(before, w.dump()), "")
	equal(w, "another", w.hit("p:499").Count, 2)
}

func hitRequest(w *world) {
	w.define(wire.Threshold{ID: "s", Count: 99, Within: lease})
	w.define(wire.Threshold{ID: "t", Count: 99, Within: lease})
	request := func(name, id string) string { return brief(w.hitWith(wire.RequestToken(name, id), hits(id)...)) }
	equal(w, "first", request("r", "s"), "1")
	equal(w, "again", request("r", "s"), "1")
	equal(w, "another counter", request("r", "t"), "1")
	equal(w, "another name", request("r\x00", "s"), "2")
	equal(w, "no other's token", brief(w.hitAll(hits("s")...)), "3")
	if w.real {
		return
	}
	w.pass(wire.KeepRequest - time.Millisecond)
	equal(w, "at last", request("r", "s"), "1")
	equal(w, "others go on", request("q", "t"), "2")
	w.pass(time.Millisecond)
	equal(w, "forgotten", request("r", "s"), "1") // in a new window
	equal(w, "counted", w.hit("s").Count, 2)
}

func hitTokens(w *world) {
	w.define(wire.Threshold{ID: "c", Count: 1 << 40, Within: lease})
	if w.real { // a minute, and so some hundred tokens, would take as long
		w.hit("c")
		return
	}
	for range 100 {
		w.hit("c")
		w.hit("c")
		w.pass(time.Second)
	}
	if n := must(w.rdb.HLen(w.Context(), "keyfuse:counted").Result())(w); n > 2*31 {
		w.Errorf("%d tokens are kept, want those of half a minute", n)
	}
	equal(w, "in step", must(w.rdb.ZCard(w.Context(), "keyfuse:counted_until").Result())(w), must(w.rdb.HLen(w.Context(), "keyfuse:counted").Result())(w))
}

func hitTimer(w *world) {
	for _, id := range []string{"t", "other", "bare", "window"} {
		w.define(wire.Threshold{ID: id, Count: 3, Within: lease})
	}
	w.armNew(job("t", "mail", lease), job("other", "bill", lease))
	w.set("bare", "17", lease)
	w.set("class:bare", "bill", 0)
	before := w.dump()
	equal(w, "hits", brief(w.hitAll(hits("t", "other", "bare")...)), "J J J")
	w.touch("t", "other", "bare")
	equal(w, "changes", changes(before, w.dump()), "")

	w.hit("window")
	before = w.dump()
	for _, mode := range []wire.IfExists{wire.Fail, wire.Replace, wire.Keep} {
		equal(w, string(mode), w.arm(mode, job("window", "mail", w.span), job("window", "bill", 0)), []wire.ArmResult{{Outcome: wire.RefusedWindow}, {Outcome: wire.RefusedWindow}})
	}
	equal(w, "changes", changes(before, w.dump()), "")
	w.del("window", "class:window") // cancelled by hand, which nobody has noticed yet
	equal(w, "noticed late", w.arm(wire.Fail, job("window", "bill", w.span))[0].Outcome, wire.RefusedWindow)
	equal(w, "cancelled", w.cancel("window").Outcome, wire.ChangedIt)
	equal(w, "after that", w.arm(wire.Fail, job("window", "mail", w.span))[0].Outcome, wire.ArmedNew)
	equal(w, "cancelled", w.cancel("window").Outcome, wire.ChangedIt)
	equal(w, "hit", brief(w.hitAll(hits("window")...)), "1")

	equal(w, "cancelled", w.cancel("t").Outcome, wire.ChangedIt)
	equal(w, "hit", brief(w.hitAll(hits("t")...)), "1")
}

func hitLeavesNothing(w *world) {
	w.define(wire.Threshold{ID: "fire", Count: 3, Payload: []byte("p")})
	w.define(wire.Threshold{ID: "drop", Count: 3, OnTimeout: wire.TimeoutDrops})
	w.define(wire.Threshold{ID: "once", Count: 3, Mode: wire.Once})
	w.define(wire.Threshold{ID: "p:*", Count: 3, Debounce: w.span})
	ids := []string{"fire", "drop", "once", "p:1", "p:2"}
	all := func() (some []wire.Hit) {
		for i, id := range ids {
			some = append(some, wire.Hit{ID: id, By: 1, Item: fmt.Sprint(i)})
		}
		return some
	}
	before := w.state()
	for range 4 { // across the threshold and into the next window
		w.hitAll(all()...)
	}
	w.take("n", "mail")
	last := w.hitAll(all()...)
	equal(w, "cancelled", w.cancel("p:1").Outcome, wire.ChangedIt)
	w.until(last[0].Ends.Add(w.span))
	w.take("n", "mail")
	equal(w, "after the ends", changes(before, w.state()), "")

	w.hitAll(all()...)
	w.until(w.hitAll(all()...)[0].Ends.Add(w.span))
	w.touch(ids...)
	w.take("n", "mail")
	equal(w, "looked at after the ends", changes(before, w.state()), "")

	w.hitAll(all()...)
	for _, id := range ids {
		must(w.s.Move(w.Context(), id, wire.When{}, true))(w)
	}
	w.take("n", "mail")
	equal(w, "fired by hand", changes(before, w.state()), "")
	w.hitAll(all()...)
	equal(w, "cancelled", len(must(w.s.Cancel(w.Context(), ids...))(w)), len(ids))
	equal(w, "cancelled", changes(before, w.state()), "")
}

// state is dump without what stays for a while, or for good: tokens, the last
// firings, runs, and nodes.
func (w *world) state() string {
	w.Helper()
	var text strings.Builder
	for line := range strings.Lines(w.dump()) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(line, `"keyfuse:`), `"`)
		kind, _, _ = strings.Cut(kind, ":")
		switch kind {
		case "counted", "counted_until", "firings", "tasks", "runs", "running", "ids", "nodes", "info", "claims":
			continue
		}
		text.WriteString(line)
	}
	return text.String()
}

func hitFirings(w *world) {
	w.define(wire.Threshold{ID: "p*", Count: 2, Within: lease})
	begin := w.now().Truncate(time.Millisecond)
	for i := range 12 {
		w.hitBy(fmt.Sprint("p", i), int64(2+i))
	}
	w.hitAll(hits("p a", "p a", "p b", "p b", "p c")...)
	got := w.activity("p*")
	equal(w, "open", got.Open, 1)
	var fired []string
	for _, f := range got.Fired {
		fired = append(fired, fmt.Sprintf("%s %s %d", f.ID, f.Reason, f.Count))
		if f.At.Before(begin) || f.At.After(w.now()) {
			w.Errorf("fired %s, want now", f.At)
		}
	}
	equal(w, "fired", strings.Join(fired, "; "), "p b threshold 2; p a threshold 2; "+
		"p11 threshold 13; p10 threshold 12; p9 threshold 11; p8 threshold 10; p7 threshold 9; p6 threshold 8; p5 threshold 7; p4 threshold 6")
	equal(w, "of none", w.activity("none"), wire.Activity{})
}
