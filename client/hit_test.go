package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var hitChecks = []check{
	{"hit: says the count, the threshold, and when the window ends", hitAnswers},
	{"hit: what is wrong with one is said, and nothing is written", hitRefuses},
	{"hit: what its counter can't take is said, and changes nothing", hitMeets},
	{"hit: the limits themselves are allowed", hitLimits},
	{"hit: a request id counts once, and is answered the same", hitOnce},
	{"hit: a request id and an id are not taken for others that join to the same", hitOnceExactly},
	{"hit: a refused one may be tried again under its request id", hitAgain},
	{"hit: items come with the firing, in order", hitItems},
	{"hit many: all are answered in order, however many", hitManyInOrder},
	{"hit many: refused ones stop none of the others", hitManyWithRefused},
	{"hit many: one with a request id comes in its turn", hitManyWithRequest},
	{"hit many: big items are spread over calls", hitManyBig},
	{"hit many: an error of Redis ends it, and what was answered is counted", hitManyBroken},
	{"hit many: of a chunk that took several calls, what was counted before an error is told", hitManyBrokenInside},
	{"hit many: stopping early stops reading", hitManyStops},
	{"hit many: none", hitManyNone},
}

func (w *world) hitWith(hit client.Hit) client.Counted {
	w.Helper()
	return must(w.c.Hit(w.Context(), hit))(w)
}

func (w *world) hit(id string) client.Counted {
	w.Helper()
	return w.hitWith(client.Hit{ID: id})
}

// refused fails unless a hit is, for a reason that names the counter.
func (w *world) refused(hit client.Hit, want error) {
	w.Helper()
	counted, err := w.c.Hit(w.Context(), hit)
	if !errors.Is(err, want) || want != client.ErrInvalid && !strings.Contains(err.Error(), fmt.Sprintf("%q", hit.ID)) {
		w.Errorf("a hit of %q by %d: %v, want %v", hit.ID, hit.By, err, want)
	}
	equal(w, "answer", counted, client.Counted{ID: hit.ID})
}

// hits counts many, and returns what became of them.
func (w *world) hits(hits []client.Hit) []client.HitResult {
	w.Helper()
	var results []client.HitResult
	for i, r := range w.c.HitMany(w.Context(), slices.Values(hits)) {
		if i != len(results) {
			w.Errorf("result %d comes as number %d", i, len(results))
		}
		results = append(results, r)
	}
	return results
}

func hitAnswers(w *world) {
	w.define(counter("c", 3))
	before := w.now().Truncate(time.Millisecond)
	first := w.hit("c")
	if early := before.Add(time.Hour).Sub(first.Ends); early > 0 {
		w.Errorf("the window ends %s early", early)
	}
	want := client.Counted{ID: "c", Count: 1, Threshold: 3, Ends: first.Ends}
	equal(w, "first", first, want)
	want.Count, want.Fired = 5, true
	equal(w, "crosses", w.hitWith(client.Hit{ID: "c", By: 4}), want)
	equal(w, "next", w.hit("c").Count, 1)
}

var refusedHits = map[string]client.Hit{
	"no id":                       {},
	"the id is too long":          {ID: strings.Repeat("x", 513)},
	"the id is a mapping":         {ID: "class:c"},
	"the id is internal":          {ID: "keyfuse:c"},
	"a pattern":                   {ID: "p:*"},
	"by less than nothing":        {ID: "c", By: -1},
	"by more than Lua can count":  {ID: "c", By: 1 << 53},
	"an item that is no text":     {ID: "c", Item: "\xff"},
	"an item that is too long":    {ID: "c", Item: strings.Repeat("x", 1<<20+1)},
	"a request id that is longer": {ID: "c", RequestID: strings.Repeat("x", 201)},
}

func hitRefuses(w *world) {
	w.define(counter("c", 3), counter("p:*", 3))
	before := w.keys()
	for what, hit := range refusedHits {
		if _, err := w.c.Hit(w.Context(), hit); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("%s: %v", what, err)
		}
	}
	prefixed := w.client(client.Config{IDPrefix: "jobs:"})
	if _, err := prefixed.Hit(w.Context(), client.Hit{ID: "c"}); !errors.Is(err, client.ErrInvalid) {
		w.Errorf("without the prefix: %v", err)
	}
	equal(w, "keys", w.keys(), before)
}

func hitMeets(w *world) {
	items := counter("items", 100)
	items.MaxItems, items.MaxBytes = 2, 14
	w.define(counter("text", 3), counter("list", 3), counter("full", 3), counter("job", 3), items)
	must(w.rdb.Set(w.Context(), w.fuse("text"), "1.5", 0).Result())(w)
	must(w.rdb.RPush(w.Context(), w.fuse("list"), "1").Result())(w)
	must(w.rdb.Set(w.Context(), w.fuse("full"), "9007199254740991", 0).Result())(w)
	w.schedule(client.Spec{ID: "job", Task: "mail", In: time.Hour})
	w.hitWith(client.Hit{ID: "items", Item: "1"})
	before := w.keys()

	w.refused(client.Hit{ID: "nothing"}, client.ErrNoThreshold)
	w.refused(client.Hit{ID: "text"}, client.ErrNotCounter)
	w.refused(client.Hit{ID: "list"}, client.ErrNotCounter)
	w.refused(client.Hit{ID: "full"}, client.ErrOverflow)
	w.refused(client.Hit{ID: "job"}, client.ErrPending)
	w.refused(client.Hit{ID: "items", Item: "12345678"}, client.ErrItems) // "1",  and "12345678", are 15 bytes
	w.hitWith(client.Hit{ID: "items", Item: "1234567"})
	w.refused(client.Hit{ID: "items", Item: "3"}, client.ErrItems)
	equal(w, "without an item", w.hit("items").Count, 3)
	equal(w, "keys", w.keys(), before)
	for key, want := range map[string]string{w.fuse("text"): "1.5", w.fuse("full"): "9007199254740991", w.class("job"): "mail"} {
		equal(w, key, must(w.rdb.Get(w.Context(), key).Result())(w), want)
	}
}

func hitLimits(w *world) {
	items := counter("items", 2)
	items.MaxBytes = 1 << 20
	w.define(counter("c", 1<<53-1), items)
	equal(w, "by", w.hitWith(client.Hit{ID: "c", By: 1<<53 - 2, RequestID: strings.Repeat("\xff", 200)}).Count, 1<<53-2)
	equal(w, "to the end", w.hit("c").Fired, true)
	long := strings.Repeat("x", 1<<20-3) // two quotes and a comma
	w.hitWith(client.Hit{ID: "items", By: 2, Item: long})
	equal(w, "item", w.document("items").Items, []string{long})
}

func hitOnce(w *world) {
	w.define(counter("a", 2), counter("b", 2))
	hit := client.Hit{ID: "a", RequestID: "r"}
	first := w.hitWith(hit)
	for _, by := range []int64{0, 1, 7} { // whatever it says now
		hit.By = by
		equal(w, "again", w.hitWith(hit), first)
	}
	equal(w, "another counter", w.hitWith(client.Hit{ID: "b", RequestID: "r"}).Count, 1)
	equal(w, "another name", w.hitWith(client.Hit{ID: "a", RequestID: "s"}).Fired, true)
	equal(w, "the name of the one that fired", w.hitWith(client.Hit{ID: "a", RequestID: "s"}).Fired, true)
	equal(w, "claimed", len(w.claim("mail")), 1)
	equal(w, "without a name", w.hit("a").Count, 1)
}

func hitOnceExactly(w *world) {
	w.define(counter("b\x00c", 10), counter("c", 10))
	w.hitWith(client.Hit{ID: "b\x00c", RequestID: "a", By: 5})
	equal(w, "counted", w.hitWith(client.Hit{ID: "c", RequestID: "a\x00b"}).Count, 1)
	equal(w, "counter", must(w.rdb.Get(w.Context(), w.fuse("c")).Result())(w), "1")
}

func hitAgain(w *world) {
	hit := client.Hit{ID: "c", RequestID: "r"}
	w.refused(hit, client.ErrNoThreshold)
	w.define(counter("c", 3))
	equal(w, "defined", w.hitWith(hit).Count, 1)
	equal(w, "again", w.hitWith(hit).Count, 1)
}

// document is the payload of a firing with items.
type document struct {
	Count       int64
	Reason      string
	WindowStart time.Time `json:"window_start"`
	WindowEnd   time.Time `json:"window_end"`
	Payload     string
	Items       []string
}

// document claims the only firing of a counter that has waited.
func (w *world) document(id string) document {
	w.Helper()
	var doc document
	for _, run := range w.claim("mail") {
		if run.ID == id {
			must(0, json.Unmarshal(run.Payload, &doc))(w)
		}
	}
	return doc
}

func hitItems(w *world) {
	w.define(counter("c", 5))
	items := []string{"plain", "quo\"te \\ \n\x00", "<é\u2028>", "{}"}
	for _, item := range items {
		w.hitWith(client.Hit{ID: "c", Item: item})
	}
	last := w.hit("c")
	doc := w.document("c")
	equal(w, "window", doc.WindowEnd.Before(last.Ends) && !doc.WindowStart.After(doc.WindowEnd), true)
	doc.WindowStart, doc.WindowEnd = time.Time{}, time.Time{}
	equal(w, "document", doc, document{Count: 5, Reason: "threshold", Payload: "hi", Items: items})
}

// hitsOf are n hits of one counter.
func hitsOf(id string, n int) []client.Hit { return slices.Repeat([]client.Hit{{ID: id}}, n) }

func hitManyInOrder(w *world) {
	const n = 2*wire.MaxHits + 1
	w.define(counter("c", 7))
	results := w.hits(hitsOf("c", n))
	equal(w, "number", len(results), n)
	for i, r := range results {
		want := client.HitResult{Counted: client.Counted{ID: "c", Count: int64(i%7) + 1, Threshold: 7, Fired: i%7 == 6, Ends: r.Ends}}
		equal(w, "result", r, want)
	}
	equal(w, "firings", len(w.claim("mail")), n/7)
}

func hitManyWithRefused(w *world) {
	w.define(counter("c", 1000), counter("text", 3))
	must(w.rdb.Set(w.Context(), w.fuse("text"), "x", 0).Result())(w)
	all := hitsOf("c", 300)
	all[0].ID, all[7].By, all[8].ID, all[150].Item, all[299].ID = "p*", -1, "nothing", "\xff", "text"
	bad := map[int]error{
		0: client.ErrInvalid, 7: client.ErrInvalid, 8: client.ErrNoThreshold, 150: client.ErrInvalid, 299: client.ErrNotCounter,
	}
	count := int64(0)
	for i, r := range w.hits(all) {
		if bad[i] == nil {
			count++
			equal(w, "count", r.Count, count)
		}
		if !errors.Is(r.Err, bad[i]) || r.ID != all[i].ID {
			w.Errorf("%d, %q: %v, want %v", i, r.ID, r.Err, bad[i])
		}
	}
	equal(w, "counted", count, 295)
	for _, r := range w.hits([]client.Hit{{}, {ID: "*"}}) { // nothing is left to ask Redis
		if !errors.Is(r.Err, client.ErrInvalid) {
			w.Errorf("%q: %v", r.ID, r.Err)
		}
	}
}

func hitManyWithRequest(w *world) {
	w.define(counter("c", 100))
	all := hitsOf("c", 7)
	all[2].RequestID, all[3].RequestID, all[5].RequestID = "r", "s", "r"
	var counts []int64
	for _, r := range w.hits(all) {
		counts = append(counts, r.Count)
	}
	equal(w, "counts", counts, []int64{1, 2, 3, 4, 5, 3, 6})
}

func hitManyBig(w *world) {
	t := counter("c", 100)
	t.MaxBytes = 1 << 20
	w.define(t)
	w.hit("c") // loads the script
	all := hitsOf("c", 10)
	for i := range all {
		all[i].Item = strings.Repeat("x", 1<<20)
	}
	calls := newFailing(3, errors.New("one call too many"))
	w.rdb.AddHook(calls)
	for _, r := range w.hits(all) {
		if !errors.Is(r.Err, client.ErrItems) {
			w.Errorf("%v", r.Err)
		}
	}
	equal(w, "calls left", calls.left.Load(), 0) // 4 + 4 + 2 items
}

func hitManyBroken(w *world) {
	w.define(counter("c", 1<<40))
	w.hit("c")
	broken := newFailing(1, errors.New("gone"))
	w.rdb.AddHook(broken)
	results := w.hits(hitsOf("c", 3*wire.MaxHits))
	equal(w, "results", len(results), wire.MaxHits+1)
	last := results[wire.MaxHits]
	equal(w, "the first that is not counted", []any{last.Counted, last.Err}, []any{client.Counted{ID: "c"}, broken.err})
	broken.left.Store(1 << 30)
	equal(w, "counted", w.hit("c").Count, wire.MaxHits+2)

	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	var errs []error
	for _, r := range w.c.HitMany(ctx, slices.Values(hitsOf("c", 3*wire.MaxHits))) {
		errs = append(errs, r.Err)
	}
	equal(w, "after its context ended", errs, []error{context.Canceled})
}

func hitManyBrokenInside(w *world) {
	w.define(client.Threshold{ID: "{u}*", Task: "mail", Count: 9, Within: time.Hour})
	w.hit("{u}before") // loads the script, which is a call of its own
	broken := newFailing(1, errors.New("gone"))
	w.rdb.AddHook(broken)
	told, failed := 0, error(nil)
	for i, r := range w.c.HitMany(w.Context(), func(yield func(client.Hit) bool) {
		for i := range 400 { // each opens a window, which is more than one call does
			if !yield(client.Hit{ID: fmt.Sprint("{u}", i)}) {
				return
			}
		}
	}) {
		if failed = r.Err; failed != nil {
			if i != told || r.ID != fmt.Sprint("{u}", told) {
				w.Errorf("the error came with %d, %q", i, r.ID)
			}
			continue
		}
		told++
	}
	if !errors.Is(failed, broken.err) || told == 0 || told == 400 {
		w.Errorf("%d were told, then %v", told, failed)
	}
	broken.left.Store(100)
	if info := must(w.c.Threshold(w.Context(), "{u}*"))(w); info.Open != int64(told)+1 {
		w.Errorf("%d windows are open, %d were told", info.Open, told)
	}
}

func hitManyStops(w *world) {
	w.define(counter("c", 1<<40))
	read := 0
	endless := func(yield func(client.Hit) bool) {
		for ; yield(client.Hit{ID: "c"}); read++ {
		}
	}
	for i := range w.c.HitMany(w.Context(), endless) {
		if i == 2 {
			break
		}
	}
	if read > 2*wire.MaxHits*len(w.space.All()) {
		w.Errorf("read %d hits for 3 results", read)
	}
}

func hitManyNone(w *world) {
	equal(w, "results", len(w.hits(nil)), 0)
	equal(w, "keys", w.keys(), 0)
}

func TestARequestIDIsKnownForAnHour(t *testing.T) {
	bubble(t, func(w *world) {
		long := counter("c", 100)
		long.Within = 24 * time.Hour
		w.define(long)
		hit := client.Hit{ID: "c", RequestID: "r"}
		first := w.hitWith(hit)
		time.Sleep(time.Hour - time.Second)
		equal(w, "within the hour", w.hitWith(hit), first)
		w.hit("c") // forgets what is older
		time.Sleep(time.Second + time.Millisecond)
		equal(w, "another", w.hit("c").Count, 3)
		equal(w, "after the hour", w.hitWith(hit).Count, 4)
	})
}

func TestAWindowThatEndsFiresWithItsCountOrIsDropped(t *testing.T) {
	bubble(t, func(w *world) {
		dropped := counter("dropped", 3)
		dropped.OnTimeout = client.TimeoutDrops
		w.define(counter("c", 3), dropped)
		w.hit("dropped")
		ends := w.hitWith(client.Hit{ID: "c", By: 2}).Ends
		time.Sleep(time.Hour - time.Millisecond)
		equal(w, "before", len(w.claim("mail")), 0)
		time.Sleep(time.Millisecond)
		equal(w, "claimed", len(w.claim("mail")), 1)
		job := must(w.c.Get(w.Context(), "c"))(w)[0]
		equal(w, "run", []any{job.State, job.Count, job.Reason, job.Trigger(), job.Due}, []any{client.Running, 2, "timeout", "threshold", ends})
		if _, err := w.c.Get(w.Context(), "dropped"); !errors.Is(err, client.ErrNotFound) {
			w.Errorf("dropped: %v", err)
		}
		info := must(w.c.Threshold(w.Context(), "c"))(w)
		equal(w, "fired", []any{info.Open, info.Fired[0].Reason, info.Fired[0].Count}, []any{0, "timeout", 2})
	})
}

// A connection that retries by itself may not count twice.
func TestAHitWhoseReplyIsLostCountsOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	w := newWorld(t, proxy.Client(t))
	w.define(counter("c", 2))
	w.refused(client.Hit{ID: "nothing"}, client.ErrNoThreshold) // loads the script

	proxy.SwallowRepliesTo("evalsha", 1)
	first := w.hit("c")
	equal(w, "one of two", first, client.Counted{ID: "c", Count: 1, Threshold: 2, Ends: first.Ends})
	equal(w, "counter", must(w.rdb.Get(w.Context(), w.fuse("c")).Result())(w), "1")
	proxy.SwallowRepliesTo("evalsha", 1)
	equal(w, "two of two", w.hit("c").Fired, true)
	equal(w, "firings", len(w.claim("mail")), 1)

	proxy.SwallowRepliesTo("evalsha", 2) // also that of the first repetition
	results := w.hits(hitsOf("c", 5))
	var counts []string
	for _, r := range results {
		counts = append(counts, fmt.Sprint(r.Count, r.Fired, r.Err))
	}
	one, two := "1 false <nil>", "2 true <nil>"
	equal(w, "many", counts, []string{one, two, one, two, one})
	equal(w, "firings", len(w.claim("mail")), 2)
	equal(w, "left", must(w.rdb.Get(w.Context(), w.fuse("c")).Result())(w), "1")
}

// A caller that asks again, with another connection, needs a request id.
func TestAHitThatFailedCountsOnceUnderItsRequestID(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	w := newWorld(t, proxy.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }))
	w.define(counter("c", 2))
	w.refused(client.Hit{ID: "nothing"}, client.ErrNoThreshold)

	hit := client.Hit{ID: "c", RequestID: "r"}
	proxy.SwallowRepliesTo("evalsha", 1)
	if _, err := w.c.Hit(t.Context(), hit); err == nil {
		t.Fatal("the reply was not lost")
	}
	equal(w, "again", w.hitWith(hit).Count, 1)
	equal(w, "counter", must(w.rdb.Get(w.Context(), w.fuse("c")).Result())(w), "1")
}
