package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

var scheduleChecks = []check{
	{"schedule: answers the job, which is then there", scheduleAnswers},
	{"schedule: a job without an id gets one, with the prefix", scheduleNames},
	{"schedule: an id that is pending is refused, replaced or kept", scheduleIfExists},
	{"schedule: a key of other data is refused", scheduleForeign},
	{"schedule: what is wrong with a job is said, and nothing is written", scheduleRefuses},
	{"schedule: the limits themselves are allowed", scheduleLimits},
	{"schedule: a job is not due before the time that was asked for", scheduleRoundsUp},
	{"schedule: a trace goes with the payload", scheduleTraces},
	{"many: all are answered in order, however many", manyInOrder},
	{"many: refused ones stop none of the others", manyWithRefused},
	{"many: each has its own choice of what to do with an existing id", manyMixed},
	{"many: big payloads are spread over calls", manyBig},
	{"many: an error of Redis ends it, and what was answered is there", manyBroken},
	{"many: what becomes of an id that is given twice goes by the order", manyTwice},
	{"many: stopping early stops reading", manyStops},
	{"many: none", manyNone},
}

func scheduleAnswers(w *world) {
	before := w.now().Truncate(time.Millisecond)
	s := w.schedule(client.Spec{ID: "order:42", Task: "mail", Payload: []byte("hi"), In: time.Hour})
	if early := before.Add(time.Hour).Sub(s.Due); early > 0 {
		w.Errorf("due %s early", early)
	}
	want := client.Job{ID: "order:42", Task: "mail", State: client.Pending, Payload: []byte("hi"), Due: s.Due}
	equal(w, "answer", s, client.Scheduled{Job: want})
	equal(w, "held", must(w.c.Get(w.Context(), "order:42"))(w), []client.Job{want})
}

func scheduleNames(w *world) {
	a, b := w.schedule(client.Spec{Task: "mail"}), w.schedule(client.Spec{Task: "mail"})
	if len(a.ID) < 20 || a.ID == b.ID {
		w.Errorf("ids %q and %q", a.ID, b.ID)
	}
	c := w.client(client.Config{IDPrefix: "jobs:"})
	if s := must(c.Schedule(w.Context(), client.Spec{Task: "mail"}))(w); !strings.HasPrefix(s.ID, "jobs:") {
		w.Errorf("id %q", s.ID)
	}
}

func scheduleIfExists(w *world) {
	first := w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Hour})
	spec := client.Spec{ID: "a", Task: "mail", Payload: []byte("new"), In: 2 * time.Hour}
	for _, mode := range []client.IfExists{"", client.Fail} {
		spec.IfExists = mode
		s, err := w.c.Schedule(w.Context(), spec)
		if !errors.Is(err, client.ErrExists) || !strings.Contains(err.Error(), first.Due.UTC().Format(time.RFC3339)) {
			w.Errorf("%q: %v", mode, err)
		}
		equal(w, "due", s.Due, first.Due)
	}
	spec.IfExists = client.Keep
	kept := w.schedule(spec)
	equal(w, "kept", []any{kept.Kept, kept.Replaced, kept.Due}, []any{true, false, first.Due})
	spec.IfExists = client.Replace
	replaced := w.schedule(spec)
	equal(w, "replaced", []any{replaced.Kept, replaced.Replaced, replaced.Due.After(first.Due)}, []any{false, true, true})
	equal(w, "payload", string(must(w.c.Get(w.Context(), "a"))(w)[0].Payload), "new")

	spec.IfExists = "perhaps"
	if _, err := w.c.Schedule(w.Context(), spec); !errors.Is(err, client.ErrInvalid) {
		w.Errorf("got %v", err)
	}
	must(w.rdb.Persist(w.Context(), w.fuse("a")).Result())(w)
	spec.IfExists = client.Fail
	if _, err := w.c.Schedule(w.Context(), spec); !errors.Is(err, client.ErrExists) || !strings.Contains(err.Error(), "no TTL") {
		w.Errorf("got %v", err)
	}
}

func scheduleForeign(w *world) {
	must(w.rdb.RPush(w.Context(), w.fuse("a"), "x").Result())(w)
	_, err := w.c.Schedule(w.Context(), client.Spec{ID: "a", Task: "mail", IfExists: client.Replace})
	if !errors.Is(err, client.ErrForeignKey) {
		w.Errorf("got %v", err)
	}
	equal(w, "list", must(w.rdb.LLen(w.Context(), w.fuse("a")).Result())(w), 1)
}

var refusedSpecs = map[string]client.Spec{
	"the id is too long":         {ID: strings.Repeat("x", 513), Task: "mail"},
	"the id is a mapping":        {ID: "class:a", Task: "mail"},
	"the id is internal":         {ID: "keyfuse:due:mail", Task: "mail"},
	"no task":                    {ID: "a"},
	"a space in the task":        {ID: "a", Task: "a b"},
	"the task begins with a dot": {ID: "a", Task: ".a"},
	"the task is too long":       {ID: "a", Task: strings.Repeat("x", 129)},
	"the payload is too long":    {ID: "a", Task: "mail", Payload: make([]byte, client.DefaultMaxPayload+1)},
	"a delay and a time":         {ID: "a", Task: "mail", In: 1, At: time.Unix(1, 0)},
	"a negative delay":           {ID: "a", Task: "mail", In: -1},
	"more than ten years":        {ID: "a", Task: "mail", In: client.MaxDelay + 1},
	"a time in the year 9999":    {ID: "a", Task: "mail", At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)},
}

func scheduleRefuses(w *world) {
	for what, spec := range refusedSpecs {
		if _, err := w.c.Schedule(w.Context(), spec); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("%s: %v", what, err)
		}
	}
	prefixed := w.client(client.Config{IDPrefix: "jobs:"})
	if _, err := prefixed.Schedule(w.Context(), client.Spec{ID: "a", Task: "mail"}); !errors.Is(err, client.ErrInvalid) {
		w.Errorf("without the prefix: %v", err)
	}
	small := w.client(client.Config{MaxPayload: 3})
	if _, err := small.Schedule(w.Context(), client.Spec{ID: "a", Task: "mail", Payload: []byte("1234")}); !errors.Is(err, client.ErrInvalid) {
		w.Errorf("over a limit of 3: %v", err)
	}
	equal(w, "keys", w.keys(), 0)
}

func scheduleLimits(w *world) {
	for _, spec := range []client.Spec{
		{ID: strings.Repeat("x", 512), Task: strings.Repeat("t", 128)},
		{ID: "a", Task: "mail", Payload: make([]byte, client.DefaultMaxPayload)},
		{ID: "b", Task: "mail", In: client.MaxDelay},
		{ID: "\x00\xff", Task: "mail", At: time.Unix(-1<<40, 0)},
	} {
		w.schedule(spec)
	}
}

func scheduleRoundsUp(w *world) {
	for _, c := range []struct{ in, want time.Duration }{
		{0, 0},
		{1, time.Millisecond},
		{time.Millisecond, time.Millisecond},
		{time.Hour + 1, time.Hour + time.Millisecond},
		{time.Hour - 1, time.Hour},
	} {
		before := w.now().Truncate(time.Millisecond)
		s := w.schedule(client.Spec{Task: "mail", In: c.in})
		if late := s.Due.Sub(before.Add(c.want)); late < 0 || late > time.Since(before)+time.Millisecond {
			w.Errorf("in %s: due %s after %s", c.in, late, c.want)
		}
	}
	at := w.now().Truncate(time.Second).Add(time.Hour + 1)
	equal(w, "at", w.schedule(client.Spec{Task: "mail", At: at}).Due, at.Truncate(time.Second).Add(time.Millisecond))
}

// bulk schedules many, and returns what became of them.
func (w *world) bulk(c *client.Client, specs []client.Spec) []client.Result {
	w.Helper()
	var results []client.Result
	for i, r := range c.ScheduleMany(w.Context(), slices.Values(specs)) {
		if i != len(results) {
			w.Errorf("result %d comes as number %d", i, len(results))
		}
		results = append(results, r)
	}
	return results
}

func specs(n int) []client.Spec { return specsOf("job ", n) }

// specsOf are n specs with a prefix. If that has braces, the jobs are in one
// partition of a cluster, and go together.
func specsOf(prefix string, n int) []client.Spec {
	specs := make([]client.Spec, n)
	for i, id := range numbered(prefix, n) {
		specs[i] = client.Spec{ID: id, Task: "mail", In: time.Hour}
	}
	return specs
}

const aTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func scheduleTraces(w *world) {
	spec := client.Spec{ID: "a", Task: "mail", Payload: []byte("hello"), Trace: aTrace, In: time.Hour}
	made := w.schedule(spec)
	equal(w, "made", []string{made.Trace, string(made.Payload)}, []string{aTrace, "hello"})
	job := must(w.c.Get(w.Context(), "a"))(w)[0]
	equal(w, "job", []string{job.Trace, string(job.Payload)}, []string{aTrace, "hello"})
	listed := must(w.c.List(w.Context(), client.Filter{}, "", 1))(w).Jobs[0]
	equal(w, "listed", []string{listed.Trace, string(listed.Payload)}, []string{aTrace, "hello"})
	equal(w, "in Redis", must(w.rdb.Get(w.Context(), w.class("a")).Result())(w), "mail \x00traceparent "+aTrace+"\nhello")
	c := w.client(client.Config{MaxPayload: 100})
	for name, bad := range map[string]client.Spec{
		"no trace": {Task: "mail", Trace: "00-1"},
		"too long": {Task: "mail", Trace: aTrace, Payload: make([]byte, 40)},
	} {
		if _, err := c.Schedule(w.Context(), bad); !errors.Is(err, client.ErrInvalid) {
			w.Errorf("%s: %v", name, err)
		}
	}
}

func manyInOrder(w *world) {
	const n = 2*wire.MaxArm + 1
	results := w.bulk(w.c, specs(n))
	equal(w, "number", len(results), n)
	for i, r := range results {
		equal(w, "result", []any{r.ID, r.Err, r.Due.IsZero()}, []any{fmt.Sprintf("job %03d", i), nil, false})
	}
	equal(w, "pending", must(w.c.Stats(w.Context()))(w).Tasks, []client.TaskStats{{Task: "mail", Pending: n}})
}

func manyWithRefused(w *world) {
	all := specs(300)
	all[0].Task, all[7].ID, all[299].In = "a b", "class:x", -1
	all[8].ID, all[150].IfExists = all[6].ID, "maybe"
	bad := map[int]error{0: client.ErrInvalid, 150: client.ErrInvalid, 7: client.ErrInvalid, 299: client.ErrInvalid, 8: client.ErrExists}
	results := w.bulk(w.c, all)
	equal(w, "answered", len(results), len(all))
	for i, r := range results {
		if !errors.Is(r.Err, bad[i]) {
			w.Errorf("%d: %v, want %v", i, r.Err, bad[i])
		}
	}
	for _, r := range w.bulk(w.c, []client.Spec{{ID: "x"}, {ID: "y"}}) { // nothing is left to ask Redis
		if !errors.Is(r.Err, client.ErrInvalid) {
			w.Errorf("%q: %v", r.ID, r.Err)
		}
	}
}

func manyMixed(w *world) {
	w.bulk(w.c, specs(6))
	all := specs(6)
	for i, mode := range []client.IfExists{client.Keep, client.Keep, client.Replace, "", client.Fail, client.Keep} {
		all[i].IfExists = mode
	}
	var got []string
	for _, r := range w.bulk(w.c, all) {
		got = append(got, fmt.Sprint(r.Kept, r.Replaced, errors.Is(r.Err, client.ErrExists)))
	}
	kept, replaced, failed := "true false false", "false true false", "false false true"
	equal(w, "results", got, []string{kept, kept, replaced, failed, failed, kept})
}

func manyBig(w *world) {
	all := specsOf("{job}", 10)
	for i := range all {
		all[i].Payload = make([]byte, 1<<20)
	}
	w.bulk(w.c, all[:1]) // loads the script
	must(0, w.c.Cancel(w.Context(), all[0].ID))(w)
	var calls atomic.Int64
	w.rdb.AddHook(newBefore(string(client.Fail), func() error {
		calls.Add(1)
		return nil
	}))
	for _, r := range w.bulk(w.c, all) {
		if r.Err != nil {
			w.Errorf("%q: %v", r.ID, r.Err)
		}
	}
	equal(w, "calls", calls.Load(), 3) // 4 + 4 + 2 payloads
}

func manyBroken(w *world) {
	all := specsOf("{job}", 4*wire.MaxArm)
	broken := newBefore(all[wire.MaxArm].ID, func() error { return errors.New("gone") })
	w.rdb.AddHook(broken)
	results := w.bulk(w.c, all)
	equal(w, "results", len(results), wire.MaxArm+1)
	last := results[wire.MaxArm]
	equal(w, "the first that nobody knows of", []any{last.ID, last.Err}, []any{all[wire.MaxArm].ID, "gone"})
	if n := must(w.c.Stats(w.Context()))(w).Tasks[0].Pending; n > 2*wire.MaxArm {
		w.Errorf("%d are armed, want the first and at most the third chunk", n)
	}
	broken.off.Store(true)
	for i := range all {
		all[i].IfExists = client.Keep
	}
	for _, r := range w.bulk(w.c, all[wire.MaxArm:]) {
		equal(w, "again", r.Err, nil)
	}
	equal(w, "armed", must(w.c.Stats(w.Context()))(w).Tasks[0].Pending, int64(len(all)))
}

// manyTwice has an id in two chunks: the second must not be on its way before the first
// is answered, as it would be else.
func manyTwice(w *world) {
	all := specsOf("{job}", 2*wire.MaxArm)
	for i := range all {
		all[i].IfExists = client.Replace
	}
	all[wire.MaxArm] = client.Spec{ID: all[0].ID, Task: "mail", In: time.Hour, IfExists: client.Replace, Payload: []byte("later")}
	var answered atomic.Bool
	w.rdb.AddHook(&before{arg: all[1].ID, call: func() error { return nil }, then: func() { answered.Store(true) }})
	w.rdb.AddHook(newBefore(all[wire.MaxArm+1].ID, func() error {
		if !answered.Load() {
			w.Error("both chunks are on their way")
		}
		return nil
	}))
	equal(w, "replaced", w.bulk(w.c, all)[wire.MaxArm].Replaced, true)
	equal(w, "stays", string(must(w.c.Get(w.Context(), all[0].ID))(w)[0].Payload), "later")
}

func manyStops(w *world) {
	read := 0
	endless := func(yield func(client.Spec) bool) {
		for ; yield(client.Spec{Task: "mail"}); read++ {
		}
	}
	for i := range w.c.ScheduleMany(w.Context(), endless) {
		if i == 2 {
			break
		}
	}
	if read > 2*wire.MaxArm*len(w.space.All()) { // a chunk, and the next that is on its way
		w.Errorf("read %d specs for 3 results", read)
	}
}

func manyNone(w *world) {
	equal(w, "results", len(w.bulk(w.c, nil)), 0)
	equal(w, "keys", w.keys(), 0)
}

func TestNewRefusesNonsense(t *testing.T) {
	if _, err := client.New(redis.NewClient(&redis.Options{}), client.Config{MaxPayload: -1}); err == nil {
		t.Error("a negative MaxPayload is accepted")
	}
}
