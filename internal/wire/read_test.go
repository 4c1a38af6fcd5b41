package wire_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var readChecks = []check{
	{"get: nothing, a pending job and all of its runs", getAll},
	{"get: keys of other types are no job", getForeign},
	{"page: all members, in order, whatever the page's size", pageAll},
	{"page: a member that left leaves none of the others out", pageGone},
	{"page: a member that moved is no place any more", pageMoved},
	{"page: a change between any two commands leaves none out", pageRaced},
	{"records: of a page, without those settled meanwhile", recordsOf},
	{"counts: of each task in each state, paused ones too", countsAll},
	{"runs under way: found by the very bytes of their id", runUnderWay},
}

func getAll(w *world) {
	w.runIn("a", wire.Dead)
	w.runIn("a", wire.Retrying)
	w.runIn("a", wire.Running)
	w.armNew(job("a", "bill", w.span))
	found := must(w.s.Get(w.Context(), "x", "a", "a"))(w)
	equal(w, "nothing", found[0], wire.Holding{ID: "x"})
	equal(w, "twice", found[1], found[2])
	h := found[1]
	equal(w, "pending", []any{h.Class, h.Due(), h.Indexed}, []any{"bill of a", h.Fuse, h.Fuse})
	slices.SortFunc(h.Runs, func(a, b wire.Run) int { return a.Attempt - b.Attempt })
	for _, run := range h.Runs {
		equal(w, "run", []any{run.ID, run.Task, string(run.Payload)}, []any{"a", "mail", "of a"})
		equal(w, string(run.State), []bool{run.At.IsZero(), run.Lease == ""}, []bool{false, run.State != wire.Running})
	}
	equal(w, "states", w.states("a"), "dead retrying running")
}

func getForeign(w *world) {
	must(w.rdb.RPush(w.Context(), "class:a", "mail").Result())(w)
	must(w.rdb.RPush(w.Context(), "a", "x").Result())(w)
	equal(w, "holding", w.get("a"), wire.Holding{ID: "a", Immortal: true})
}

// pages reads a task's pending jobs page by page, and calls between pages.
func (w *world) pages(size int, between func(read []string)) []string {
	w.Helper()
	var all []string
	place := wire.Place{}
	for {
		page := must(w.s.Page(w.Context(), wire.Pending, "mail", place, size))(w)
		if len(page) == 0 {
			return all
		}
		for _, z := range page {
			all = append(all, z.Member.(string))
		}
		last := page[len(page)-1]
		place = wire.Place{Score: last.Score, Member: last.Member.(string)}
		if between != nil {
			between(all)
		}
	}
}

// armAt arms jobs a, b, c, … of which each three have the same due time.
func (w *world) armAt(n int) []string {
	w.Helper()
	at := w.now().Truncate(time.Second).Add(lease)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%02d", i)
		j := job(names[i], "mail", 0)
		j.When = wire.When{At: at.Add(time.Duration(i/3) * time.Millisecond)}
		w.armNew(j)
	}
	return names
}

func pageAll(w *world) {
	equal(w, "none", w.pages(3, nil), []string{})
	names := w.armAt(10)
	for _, size := range []int{1, 2, 3, 4, 9, 10, 11} {
		equal(w, fmt.Sprint("pages of ", size), w.pages(size, nil), names)
	}
}

func pageGone(w *world) {
	names := w.armAt(12)
	got := w.pages(2, func(read []string) { w.cancel(read[len(read)-1]) })
	equal(w, "read", got, names)

	// The order is that of the bytes, whatever the server's locale.
	names = []string{"\x00", "\x00\x00", "A", "A\x00", "Z", "a", "a b", "ab", "\u00e9", "\xff", "\xff\x00", "\xff\xff"}
	at := w.now().Add(lease)
	for _, id := range names {
		j := job(id, "mail", 0)
		j.When = wire.When{At: at}
		w.armNew(j)
	}
	for _, id := range []string{"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"} {
		w.cancel(id)
	}
	got = w.pages(1, func(read []string) { w.cancel(read[len(read)-1]) })
	equal(w, "any bytes", fmt.Sprintf("%q", got), fmt.Sprintf("%q", names))
}

func pageMoved(w *world) {
	names := w.armAt(6)
	moved := false
	got := w.pages(2, func(read []string) {
		if !moved {
			moved = true
			w.move(read[len(read)-1], 2*lease)
		}
	})
	equal(w, "read", slices.Compact(slices.Sorted(slices.Values(got))), names)
}

// pageRaced cancels a job that was read already before each command.
func pageRaced(w *world) {
	names := w.armAt(12)
	gone := 0
	var read []string
	w.s.Redis().AddHook(before{func() {
		if gone < len(read)-1 { // not the last one, which is the place
			w.del("class:"+read[gone], read[gone])
			must(w.rdb.ZRem(w.Context(), w.s.OfTask("due", "mail"), read[gone]).Result())(w)
			gone++
		}
	}})
	got := w.pages(4, func(all []string) { read = all })
	equal(w, "read", got, names)
}

func recordsOf(w *world) {
	for _, state := range []wire.State{wire.Running, wire.Retrying, wire.Dead} {
		for i := range 3 {
			w.runIn(fmt.Sprint(state, i), state)
		}
		page := must(w.s.Page(w.Context(), state, "mail", wire.Place{}, 10))(w)
		runs := must(w.s.Records(w.Context(), state, "mail", page))(w)
		equal(w, string(state), len(runs), 3)
		for i, run := range runs {
			equal(w, "run", []any{run.Task, run.State, run.At, run.Lease != ""},
				[]any{"mail", state, time.UnixMilli(int64(page[i].Score)), state == wire.Running})
		}
	}
	page := must(w.s.Page(w.Context(), wire.Running, "mail", wire.Place{}, 10))(w)
	runs := must(w.s.Records(w.Context(), wire.Running, "mail", page))(w)
	w.done(runs[1])
	left := must(w.s.Records(w.Context(), wire.Running, "mail", page))(w)
	equal(w, "left", ids(left), []string{runs[0].ID, runs[2].ID})
	equal(w, "of none", must(w.s.Records(w.Context(), wire.Running, "mail", []redis.Z{}))(w), nil)
}

func countsAll(w *world) {
	equal(w, "nothing", must(w.s.Counts(w.Context()))(w), []wire.Count{})
	w.runIn("a", wire.Running)
	w.runIn("b", wire.Retrying)
	w.runIn("c", wire.Dead)
	w.armNew(job("d", "mail", w.span), job("e", "bill", w.span), job("f", "bill", w.span))
	must(w.s.Pause(w.Context(), "early"))(w)
	must(w.s.Pause(w.Context(), "mail"))(w)
	equal(w, "counts", must(w.s.Counts(w.Context()))(w), []wire.Count{
		{Task: "bill", Pending: 2},
		{Task: "early", Paused: true},
		{Task: "mail", Pending: 1, Running: 1, Retrying: 1, Dead: 1, Paused: true},
	})
}

func runUnderWay(w *world) {
	before := w.now().Truncate(time.Millisecond)
	for _, id := range []string{"a", "a*", "a b", " a", "x 1 n 5 a", "[a]", "\\a", "a\x00\xff\n"} {
		w.runIn("x"+id, wire.Running)
		run := w.runIn(id, wire.Running)
		runs := w.get(id).Runs
		equal(w, id, len(runs), 1)
		found := runs[0]
		equal(w, id, []any{found.ID, found.RunID, found.Lease, found.Node(), found.State}, []any{id, run.RunID, run.Lease, "n", wire.Running})
		if found.At.Before(before) || found.At.After(w.now()) {
			w.Errorf("%q was claimed at %s", id, found.At)
		}
		equal(w, "cancel", w.cancel(id), wire.CancelResult{Outcome: wire.MetRunning, RunID: run.RunID})
		w.done(run)
		equal(w, "settled", w.get(id).Runs, nil)
	}
}
