package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// counting is the model of thresholds. Whatever comes after what:
//
//   - each hit belongs to one window: the counts of all firings, of what was
//     dropped and of what is open add up to the hits
//   - a window fires once, with its count: when it crosses its threshold, or at
//     its end and not before
//   - a call that is made again changes nothing, and answers the same
//   - Redis holds of a counter what its window needs, and nothing once it is closed
type counting struct {
	*rapid.T
	w        *world
	counters []*counter
	calls    []hitCall // that may be made again
	waiting  []string  // what must be claimed, as "id reason count"
}

// counter is what is known of one counter.
type counter struct {
	id    string
	def   *wire.Threshold
	value int64 // of its key; 0 if there is none
	ours  bool  // the key has the TTL of its window
	open  *openWindow

	hits, claimed, dropped int64
}

// openWindow is a window, as it was when it was last looked at.
type openWindow struct {
	start, ends time.Time
	seen, need  int64
	timeout     wire.OnTimeout
	fired       bool  // in mode once,
	at          int64 // with this count
}

type hitCall struct {
	token   wire.Token
	hits    []wire.Hit
	results []wire.HitResult
	until   time.Time // when its token is forgotten
}

// now is Redis's time in full milliseconds, as scripts take it.
func (m *counting) now() time.Time { return m.w.now().Truncate(time.Millisecond) }

func (m *counting) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *counting) counter(id string) *counter {
	return m.counters[slices.IndexFunc(m.counters, func(c *counter) bool { return c.id == id })]
}

// count is what Redis does with a hit, by 0 with a look.
func (m *counting) count(c *counter, by int64) wire.HitResult {
	now := m.now()
	if c.open != nil && (!c.ours || !now.Before(c.open.ends)) {
		m.end(c)
	}
	c.hits += by
	c.value += by
	if c.open == nil && c.value == 0 {
		return wire.HitResult{}
	}
	w := c.open
	switch {
	case w == nil:
		w = &openWindow{start: now, ends: now.Add(c.def.Within)}
		if c.def.Debounce > 0 {
			w.ends = now.Add(c.def.Debounce)
		}
		c.open, c.ours = w, true
	case c.def.Debounce > 0 && !w.fired && c.value != w.seen:
		w.ends = now.Add(c.def.Debounce)
		if last := w.start.Add(c.def.MaxWait); last.Before(w.ends) {
			w.ends = last
		}
	}
	w.seen, w.need, w.timeout = c.value, c.def.Count, c.def.OnTimeout
	result := wire.HitResult{Count: c.value, Threshold: w.need, Ends: w.ends}
	if !w.fired && c.value >= w.need {
		result.Fired = true
		m.fire(c, "threshold", c.value)
		w.fired, w.at = true, c.value
		if c.def.Mode == wire.Repeat {
			c.open, c.value, c.ours = nil, 0, false
		}
	}
	return result
}

func (m *counting) fire(c *counter, reason string, count int64) {
	m.waiting = append(m.waiting, fmt.Sprintf("%s %s %d", c.id, reason, count))
}

// end closes a window. A counter that was replaced counts for the next one.
func (m *counting) end(c *counter) {
	w, count := c.open, c.value
	c.open = nil
	if c.ours {
		c.value, c.ours = 0, false
	} else {
		count = w.seen
	}
	switch {
	case w.fired:
		c.dropped += count - w.at
	case count >= w.need:
		m.fire(c, "threshold", count)
	case w.timeout == wire.TimeoutFires:
		m.fire(c, "timeout", count)
	default:
		c.dropped += count
	}
}

// lose is a counter's key that is gone, with what nobody had seen of it.
func (m *counting) lose(c *counter) {
	c.dropped += c.value
	if c.open != nil && c.ours {
		c.dropped -= c.open.seen // the window's record tells it
	}
	c.value, c.ours = 0, false
}

// passed notes that the counters of windows that have fired end with them.
func (m *counting) passed() {
	for _, c := range m.counters {
		if c.open != nil && c.open.fired && c.ours && m.now().After(c.open.ends) {
			m.lose(c)
		}
	}
}

// claimed checks what was claimed.
func (m *counting) isClaimed(runs []wire.Run) {
	for _, c := range m.counters {
		if c.open != nil && !m.now().Before(c.open.ends) {
			m.end(c)
		}
	}
	var got []string
	for _, run := range runs {
		got = append(got, fmt.Sprintf("%s %s %d", run.ID, run.Reason, run.Count))
		m.counter(run.ID).claimed += run.Count
	}
	slices.Sort(got)
	slices.Sort(m.waiting)
	if !slices.Equal(got, m.waiting) {
		m.Fatalf("claimed %q, want %q", got, m.waiting)
	}
	m.waiting = nil
}

// agree checks that Redis holds what the model says, and that no hit is missing.
func (m *counting) agree(*rapid.T) {
	open := map[string]string{}
	n := map[string]int{}
	held, total := m.held()
	for i, c := range m.counters {
		if got, want := held[i](), c.must(); got != want {
			m.Fatalf("of %q Redis holds\n%s\nbut must hold\n%s", c.id, got, want)
		}
		if c.open != nil {
			n[c.def.ID]++
			open[c.def.ID] = fmt.Sprint(n[c.def.ID])
		}
		m.addsUp(c)
	}
	if fmt.Sprint(total) != fmt.Sprint(open) {
		m.Fatalf("keyfuse:open is %v, want %v", total, open)
	}
}

// must is what Redis must hold of a counter.
func (c *counter) must() string {
	value, ttl, class, at, record, seen := "", -2*time.Nanosecond, "", -1.0, "", ""
	if c.value != 0 {
		value, ttl = fmt.Sprint(c.value), -1
	}
	if w := c.open; w != nil {
		state := "counting"
		ends := w.ends.Add(24 * time.Hour)
		switch {
		case w.fired:
			state, ends = "fired", w.ends
		case c.def.Debounce > 0:
			state = "sliding"
		}
		if c.ours {
			ttl = time.Duration(ends.UnixMilli()) * time.Millisecond
		}
		class, at = c.def.Task, float64(w.ends.UnixMilli())
		record = fmt.Sprintf("%013d %013d %s %d 0 %s %s %s", w.ends.UnixMilli(), w.start.UnixMilli(), state, w.need, w.timeout, c.def.Task, c.def.ID)
		seen = fmt.Sprint(w.seen)
	}
	return fmt.Sprintf("value %q until %d class %q index %.2f window %q seen %q", value, ttl, class, at, record, seen)
}

// without leaves a field out of a record: with which definitions it was looked at.
func without(field int, record string) string {
	fields := strings.SplitN(record, " ", 9)
	if len(fields) > field {
		fields = slices.Delete(fields, field, field+1)
	}
	return strings.Join(fields, " ")
}

// held is what Redis holds of each counter, and keyfuse:open.
func (m *counting) held() (held []func() string, open map[string]string) {
	ctx, pipe := m.w.Context(), m.w.rdb.Pipeline()
	for _, c := range m.counters {
		value, ttl, class := pipe.Get(ctx, c.id), pipe.PExpireTime(ctx, c.id), pipe.Get(ctx, "class:"+c.id)
		index, record := pipe.ZScore(ctx, "keyfuse:due:"+c.def.Task, c.id), pipe.HGet(ctx, "keyfuse:windows", c.id)
		seen := pipe.HGet(ctx, "keyfuse:counts", c.id)
		held = append(held, func() string {
			at := index.Val()
			if index.Err() != nil {
				at = -1
			}
			return fmt.Sprintf("value %q until %d class %q index %.2f window %q seen %q", value.Val(), ttl.Val(), class.Val(), at, without(3, record.Val()), seen.Val())
		})
	}
	all := pipe.HGetAll(ctx, "keyfuse:open")
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		m.Fatal(err)
	}
	return held, all.Val()
}

// addsUp checks that each hit is somewhere, by what nodes were told and what
// Redis holds.
func (m *counting) addsUp(c *counter) {
	sum := c.claimed + c.dropped + c.value
	if w := c.open; w != nil {
		if !c.ours {
			sum += w.seen
		}
		if w.fired {
			sum -= w.at
		}
	}
	for _, run := range m.waiting {
		if rest, ok := strings.CutPrefix(run, c.id+" "); ok {
			var reason string
			var count int64
			if _, err := fmt.Sscan(rest, &reason, &count); err != nil {
				m.Fatal(err)
			}
			sum += count
		}
	}
	if sum != c.hits {
		m.Fatalf("%q was hit %d times, but %d are accounted for", c.id, c.hits, sum)
	}
}
