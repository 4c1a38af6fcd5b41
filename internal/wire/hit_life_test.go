package wire_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// TestCounting lives through random lives of a few counters on the embedded
// Redis. A model says after each step what must hold: see counting.
func TestCounting(t *testing.T) {
	bubble(t, false, func(w *world) {
		rapid.Check(t, func(t *rapid.T) { liveCounting(t, w) })
	})
}

func liveCounting(t *rapid.T, w *world) {
	if err := w.rdb.FlushAll(w.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	clear(w.seq)
	m := &counting{T: t, w: w}
	m.define()
	t.Repeat(map[string]func(*rapid.T){
		"hit": m.hit, "hit ": m.hit, "hits": m.hits, "hit again": m.hitAgain,
		"incr": m.incr, "incr ": m.incr, "look": m.look, "look at all": m.lookAtAll,
		"time": m.pass, "time ": m.pass, "claim": m.claim, "event": m.hear, "define": m.redefine, "delete": m.delete,
		"": m.agree,
	})
	m.drain()
}

func (m *counting) define() {
	const s = time.Second
	for _, d := range []struct {
		ids []string
		def wire.Threshold
	}{
		{[]string{"fire"}, wire.Threshold{ID: "fire", Count: 3, Within: 5 * s}},
		{[]string{"p:1", "p:2"}, wire.Threshold{ID: "p:*", Count: 4, Within: 6 * s, OnTimeout: wire.TimeoutDrops}},
		{[]string{"p:own"}, wire.Threshold{ID: "p:own", Count: 2, Within: 3 * s}},
		{[]string{"once"}, wire.Threshold{ID: "once", Count: 2, Within: 7 * s, Mode: wire.Once}},
		{[]string{"later"}, wire.Threshold{ID: "lat*r", Count: 5, Within: s, Debounce: 2 * s, MaxWait: 6 * s}},
		{[]string{"once-later"}, wire.Threshold{ID: "once-l*", Count: 3, Within: s, Debounce: 2 * s, MaxWait: 5 * s, Mode: wire.Once, OnTimeout: wire.TimeoutDrops}},
	} {
		d.def.Task = "t" + fmt.Sprint(len(m.counters)%2)
		def, err := d.def.Complete(lease)
		m.must(err)
		_, _, err = m.w.s.Define(m.w.Context(), def)
		m.must(err)
		for _, id := range d.ids {
			m.counters = append(m.counters, &counter{id: id, def: &def})
		}
	}
}

func (m *counting) any(t *rapid.T) *counter {
	return m.counters[rapid.IntRange(0, len(m.counters)-1).Draw(t, "counter")]
}

// by is mostly 1, and sometimes more than any threshold.
func by(t *rapid.T) int64 { return rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 9}).Draw(t, "by") }

func (m *counting) hit(t *rapid.T) {
	m.call(t, []wire.Hit{{ID: m.any(t).id, By: by(t)}})
}

func (m *counting) hits(t *rapid.T) {
	all := make([]wire.Hit, rapid.IntRange(2, 12).Draw(t, "hits"))
	plain := rapid.Bool().Draw(t, "by 1")
	for i := range all {
		all[i] = wire.Hit{ID: m.any(t).id, By: 1}
		if !plain {
			all[i].By = by(t)
		} else if i > 0 && rapid.Bool().Draw(t, "again") {
			all[i].ID = all[i-1].ID
		}
	}
	m.call(t, all)
}

func (m *counting) call(t *rapid.T, all []wire.Hit) {
	call := hitCall{token: wire.NewToken(), hits: all, until: m.now().Add(wire.KeepToken)}
	var err error
	call.results, err = m.w.s.Hit(m.w.Context(), call.token, all)
	m.must(err)
	for i, hit := range all {
		want := m.count(m.counter(hit.ID), hit.By)
		if got := call.results[i]; got.Outcome != want.Outcome || got.Count != want.Count || got.Threshold != want.Threshold ||
			got.Fired != want.Fired || !got.Ends.Equal(want.Ends) {
			t.Fatalf("hit %d of %+v: got %+v, want %+v", i, all, got, want)
		}
	}
	m.calls = append(m.calls, call)
	if lost(t) {
		m.again(call)
	}
}

// hitAgain is a connection that makes a call again whose reply was lost, after
// whatever came between.
func (m *counting) hitAgain(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("nothing was hit")
	}
	if call := rapid.SampledFrom(m.calls).Draw(t, "call"); m.now().Before(call.until) {
		m.again(call)
	}
}

func (m *counting) again(call hitCall) {
	results, err := m.w.s.Hit(m.w.Context(), call.token, call.hits)
	m.must(err)
	if fmt.Sprint(results) != fmt.Sprint(call.results) {
		m.Fatalf("the repeated call answered %+v, not %+v", results, call.results)
	}
}

func (m *counting) incr(t *rapid.T) {
	c, n := m.any(t), by(t)
	value, err := m.w.rdb.IncrBy(m.w.Context(), c.id, n).Result()
	m.must(err)
	c.hits += n
	c.value += n
	if value != c.value {
		t.Fatalf("INCRBY %q %d answers %d, want %d", c.id, n, value, c.value)
	}
}

func (m *counting) look(t *rapid.T) { m.lookAt(m.any(t)) }

func (m *counting) lookAtAll(*rapid.T) { m.lookAt(m.counters...) }

func (m *counting) lookAt(counters ...*counter) {
	want := false
	ids := make([]string, len(counters))
	for i, c := range counters {
		ids[i] = c.id
		want = m.count(c, 0).Fired || want
	}
	got, err := m.w.s.Touch(m.w.Context(), ids)
	m.must(err)
	if got != want {
		m.Fatalf("a look at %q crossed: %t, want %t", ids, got, want)
	}
}

func (m *counting) pass(t *rapid.T) {
	m.w.pass(time.Duration(rapid.SampledFrom([]int{1, 500, 1000, 1000, 1999, 2000, 3000, 20000}).Draw(t, "ms")) * time.Millisecond)
	m.passed()
}

func (m *counting) claim(*rapid.T) {
	req := m.w.wants("n", 200, "t0", "t1")
	claimed, err := m.w.s.Claim(m.w.Context(), req)
	m.must(err)
	m.isClaimed(claimed.Runs)
	for _, run := range claimed.Runs {
		_, err := m.w.s.Done(m.w.Context(), run.Task, []wire.Run{run})
		m.must(err)
	}
}

// hear is an event, or a sweep, that comes whenever it likes.
func (m *counting) hear(t *rapid.T) {
	by := rapid.SampledFrom([]wire.Finder{wire.ByEvent, wire.BySweep}).Draw(t, "by")
	for _, c := range m.counters {
		if c.open != nil && !c.ours {
			continue // it ended with its counter: an event may say so
		}
		_, err := m.w.s.Adopt(m.w.Context(), by, 0, limit, []string{c.id})
		m.must(err)
	}
}

func (m *counting) redefine(t *rapid.T) {
	c := m.any(t)
	c.def.Count = rapid.Int64Range(1, 6).Draw(t, "count")
	_, _, err := m.w.s.Define(m.w.Context(), *c.def)
	m.must(err)
}

// delete is another client that deletes a counter: the window ends with what
// was seen of it.
func (m *counting) delete(t *rapid.T) {
	c := m.any(t)
	m.must(m.w.rdb.Del(m.w.Context(), c.id).Err())
	m.lose(c)
}

// drain lets all windows end. Each hit is then in a firing, or was dropped.
func (m *counting) drain() {
	for range 2 {
		m.lookAtAll(m.T)
		m.w.pass(time.Hour / 2)
		m.passed()
		m.claim(m.T)
	}
	m.agree(m.T)
	for _, c := range m.counters {
		if c.open != nil || c.value != 0 || c.claimed+c.dropped != c.hits {
			m.Fatalf("in the end: %+v", *c)
		}
	}
	if left := m.w.dumpOf("keyfuse:windows", "keyfuse:open", "keyfuse:due:t0", "keyfuse:due:t1"); left != "" {
		m.Fatalf("left:\n%s", left)
	}
}
