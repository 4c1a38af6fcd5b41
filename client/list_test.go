package client_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var listChecks = []check{
	{"list: all jobs in order, whatever the page's size", listPages},
	{"list: each state, with what it has", listStates},
	{"list: one task, and ids with a prefix", listFilters},
	{"list: what is there all the while is listed, whatever goes meanwhile", listChanges},
	{"list: what is changed while it is listed does not make it endless", listEnds},
	{"list: an iterator over all, which may stop early or fail", listAll},
	{"list: wrong limits and cursors are refused", listRefuses},
	{"list: jobs of one due time, with ids of any bytes", listSameTime},
	{"list: a page that looked at thousands in vain says where to go on", listSearches},
	{"horizons: how many are due how soon, in all partitions", horizons},
	{"list: a page of long payloads ends early", listLong},
}

func listSearches(w *world) {
	const others = 10_100
	w.bulk(w.c, specsOf("other", others))
	w.schedule(client.Spec{ID: "that", Task: "mail", In: 2 * time.Hour})
	f := client.Filter{Prefix: "that"}
	page := must(w.c.List(w.Context(), f, "", 10))(w)
	equal(w, "found", len(page.Jobs), 0)
	if page.Next == "" {
		w.Fatal("the first page is the last, and has not found it")
	}
	page = must(w.c.List(w.Context(), f, page.Next, 10))(w)
	equal(w, "found later", len(page.Jobs), 1)
	equal(w, "in all", strings.Join(w.list(f, 10, nil), " "), "that")
}

func horizons(w *world) {
	within, _ := horizonsOf(w)
	equal(w, "none", len(within), 0)
	for i, in := range []time.Duration{0, 0, 30 * time.Second, time.Minute, time.Hour, 48 * time.Hour} {
		w.schedule(client.Spec{ID: fmt.Sprint("job", i), Task: "mail", In: in})
	}
	w.schedule(client.Spec{ID: "bill", Task: "bill", In: 2 * time.Hour})
	w.in(client.Retrying, "call", "retrying")
	for _, run := range w.in(client.Running, "call", "a", "b") {
		failure := wire.Failure{Run: run, Verdict: wire.Retry} // at once, and so it is overdue
		must(w.space.Of(run.ID).Fail(w.Context(), "call", []wire.Failure{failure}))(w)
	}
	within, overdue := horizonsOf(w)
	equal(w, "within", within, map[string][]int64{"mail": {2, 4, 5, 5}, "bill": {0, 0, 0, 1}, "call": {0, 0, 0, 0}})
	equal(w, "overdue", overdue, map[string]int64{"mail": 2, "bill": 0, "call": 2})
}

// horizonsOf are the counts by task, after a look at since when there are overdue ones.
func horizonsOf(w *world) (within map[string][]int64, overdue map[string]int64) {
	w.Helper()
	all, now, err := w.c.Horizons(w.Context(), 0, time.Minute, time.Hour, 24*time.Hour)
	if err != nil {
		w.Fatal(err)
	}
	within, overdue = make(map[string][]int64), make(map[string]int64)
	for _, h := range all {
		within[h.Task], overdue[h.Task] = h.Within, h.Overdue
		if late := now.Sub(h.Since); h.Overdue > 0 && (late < 0 || late > time.Minute) || h.Overdue == 0 && !h.Since.IsZero() {
			w.Errorf("%s: the first is %s late, and %d are overdue", h.Task, late, h.Overdue)
		}
	}
	return within, overdue
}

// Payloads are read whole, so a page of long ones ends early; none is left out.
func listLong(w *world) {
	ids := numbered("long", 40)
	for _, id := range ids {
		w.schedule(client.Spec{ID: id, Task: "mail", Payload: make([]byte, client.DefaultMaxPayload), In: time.Hour})
	}
	most := 0
	got := w.list(client.Filter{}, 100, func(page client.Page) { most = max(most, len(page.Jobs)) })
	slices.Sort(got)
	equal(w, "listed", got, ids)
	if most > 16 {
		w.Errorf("a page has %d of 1 MiB", most)
	}
}

// list reads a whole list in pages, and calls between them.
func (w *world) list(f client.Filter, limit int, between func(page client.Page)) []string {
	w.Helper()
	var ids []string
	for cursor, pages := "", 0; ; pages++ {
		page := must(w.c.List(w.Context(), f, cursor, limit))(w)
		if len(page.Jobs) > limit {
			w.Fatalf("a page of %d has %d jobs", limit, len(page.Jobs))
		}
		for _, job := range page.Jobs {
			ids = append(ids, job.ID)
		}
		if between != nil {
			between(page)
		}
		if cursor = page.Next; cursor == "" {
			return ids
		}
		if pages > 1000 {
			w.Fatal("the list does not end")
		}
	}
}

func listPages(w *world) {
	equal(w, "nothing", w.list(client.Filter{}, 10, nil), nil)
	a, b := numbered("x", 7), numbered("a", 5)
	w.many("bill", a...)
	w.many("mail", b...)
	for _, limit := range []int{1, 2, 5, 6, 7, 11, 12, 13, 1000} {
		equal(w, fmt.Sprint("pages of ", limit), w.list(client.Filter{}, limit, nil), slices.Concat(a, b))
	}
}

func listStates(w *world) {
	for _, state := range []client.State{client.Running, client.Retrying, client.Dead} {
		ids := numbered(string(state), 3)
		runs := w.in(state, "mail", ids...)
		page := must(w.c.List(w.Context(), client.Filter{State: state}, "", 10))(w)
		equal(w, string(state), len(page.Jobs), 3)
		for _, job := range page.Jobs {
			node := map[bool]string{true: "n"}[state == client.Running]
			equal(w, job.ID, []any{job.State, job.Task, job.Attempt, string(job.Payload), wire.EngineOf(job.Node), job.At.IsZero()},
				[]any{state, "mail", 1, "of " + job.ID, node, false})
		}
		listed := w.list(client.Filter{State: state}, 2, nil)
		slices.Sort(listed)
		equal(w, string(state), listed, ids)
		equal(w, "runs", len(runs), 3)
	}
	w.many("mail", "p")
	equal(w, "pending", w.list(client.Filter{State: client.Pending}, 2, nil), []string{"p"})
}

func listFilters(w *world) {
	all := numbered("order:", 150)
	w.many("mail", slices.Concat(all, []string{"x", "order"})...)
	w.many("bill", "order:bill")
	w.in(client.Dead, "mail", "order:dead", "dead")
	for _, limit := range []int{1, 40, 150, 200} {
		equal(w, "prefix and task", w.list(client.Filter{Task: "mail", Prefix: "order:"}, limit, nil), all)
		equal(w, "prefix of one", w.list(client.Filter{Prefix: "x"}, limit, nil), []string{"x"})
		equal(w, "task", w.list(client.Filter{Task: "bill"}, limit, nil), []string{"order:bill"})
		equal(w, "unknown task", w.list(client.Filter{Task: "no"}, limit, nil), nil)
		equal(w, "dead", w.list(client.Filter{State: client.Dead, Prefix: "order:"}, limit, nil), []string{"order:dead"})
	}
}

func listChanges(w *world) {
	all := numbered("job", 20)
	w.many("mail", all...)
	var gone []string
	got := w.list(client.Filter{}, 3, func(page client.Page) {
		for i, job := range page.Jobs { // the first and the last of each page
			if i == 0 || i == len(page.Jobs)-1 {
				must(0, w.c.Cancel(w.Context(), job.ID))(w)
				gone = append(gone, job.ID)
			}
		}
	})
	equal(w, "listed", got, all)
	stay := slices.DeleteFunc(all, func(id string) bool { return slices.Contains(gone, id) })
	equal(w, "left", w.list(client.Filter{}, 3, nil), stay)
}

func listEnds(w *world) {
	w.many("mail", numbered("job", 10)...)
	w.list(client.Filter{}, 2, func(page client.Page) {
		for _, job := range page.Jobs { // before all others
			must(w.c.Reschedule(w.Context(), job.ID, time.Minute, time.Time{}))(w)
		}
	})
}

func listAll(w *world) {
	all := numbered("job ", 250)
	w.bulk(w.c, specs(250))
	var ids []string
	for job, err := range w.c.All(w.Context(), client.Filter{}) {
		ids = append(ids, must(job, err)(w).ID)
	}
	slices.Sort(ids)
	equal(w, "all", ids, all)
	for range w.c.All(w.Context(), client.Filter{}) {
		break
	}
	broken := newFailing(5*int64(len(w.space.All())), errors.New("gone")) // after the first page
	w.rdb.AddHook(broken)
	n := 0
	var last error
	for _, err := range w.c.All(w.Context(), client.Filter{}) {
		n, last = n+1, err
	}
	equal(w, "ends with the error", []any{n > 1, errors.Is(last, broken.err)}, []any{true, true})
}

func listRefuses(w *world) {
	w.many("mail", numbered("job", 3)...)
	for _, limit := range []int{0, -1} {
		if _, err := w.c.List(w.Context(), client.Filter{}, "", limit); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("limit %d: %v", limit, err)
		}
	}
	cursor := must(w.c.List(w.Context(), client.Filter{}, "", 1))(w).Next
	for _, f := range []client.Filter{{Task: "mail"}, {Prefix: "j"}, {State: client.Dead}} {
		if _, err := w.c.List(w.Context(), f, cursor, 1); !errors.Is(err, client.ErrBadCursor) {
			w.Errorf("a cursor of another list: %v", err)
		}
	}
	for _, bad := range hostileCursors {
		if page, err := w.c.List(w.Context(), client.Filter{}, bad, 1); err == nil {
			equal(w, bad, len(page.Jobs) <= 1, true)
		} else if !errors.Is(err, client.ErrBadCursor) {
			w.Errorf("cursor %q: %v", bad, err)
		}
	}
}

var hostileCursors = []string{
	"?", "x", "AAAA", encode(`{}`), encode(`null`), encode(`[]`), encode(`{"State":"cGVuZGluZw","Member":"YQ"}`),
	encode(`{"State":"cGVuZGluZw==","Member":"YQ=="}`), encode(`{"State":"cGVuZGluZw==","At":"bWFpbA==","Member":"YQ==","Score":1e308}`),
	encode(`{"State":"cGVuZGluZw==","At":"bWFpbA==","Member":"YQ==","Score":-1e308}`), encode(`{"State":"cGVuZGluZw==","At":"/w==","Member":"AA==","Score":0}`),
	encode(`{"State":"cGVuZGluZw==","Member":"YQ==","Score":1e999}`),
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func listSameTime(w *world) {
	at := w.now().Add(time.Hour)
	ids := []string{"\x00", "a", "a\x00", "a\x00b", "é", "\xff"}
	for _, id := range ids {
		w.schedule(client.Spec{ID: id, Task: "mail", At: at})
	}
	slices.Sort(ids)
	for _, limit := range []int{1, 2, 3} {
		equal(w, "listed", w.list(client.Filter{}, limit, nil), ids)
	}
}

func FuzzCursor(f *testing.F) {
	for _, cursor := range hostileCursors {
		f.Add(cursor)
	}
	c, err := client.New(redis.NewClient(&redis.Options{Addr: "192.0.2.1:1", Dialer: unreachable}), client.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		_, err := c.List(t.Context(), client.Filter{Task: "mail"}, cursor, 1)
		if err == nil || !errors.Is(err, client.ErrBadCursor) && !errors.Is(err, errUnreachable) {
			t.Fatalf("%q: %v", cursor, err)
		}
	})
}
