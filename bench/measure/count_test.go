package measure

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/record"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

func newRecord(t *testing.T, jobs int) *record.Record {
	t.Helper()
	r, err := record.Open(filepath.Join(t.TempDir(), "record"), jobs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestCount(t *testing.T) {
	r := newRecord(t, 5)
	due := time.Now().Add(-time.Minute)
	jobs := []way.Jobs{{From: 1, Count: 2, First: due}, {From: 3, Count: 2, First: due, Step: time.Second}}
	r.StartAt(1, due.Add(-time.Millisecond)) // early
	r.End(1)
	r.StartAt(2, due.Add(20*time.Millisecond)) // and again
	r.StartAt(2, due.Add(30*time.Millisecond))
	r.End(2)
	r.StartAt(3, due.Add(5*time.Millisecond)) // and never ends
	waited := due.Add(10 * time.Second)       // job 4, due after a second, never starts

	got := count(r.Slots(), jobs, waited)
	if got.early != 1 || got.twice != 1 || got.unrun != 2 || got.ended != 2 {
		t.Errorf("early %d, twice %d, unrun %d, ended %d: want 1, 1, 2, 2", got.early, got.twice, got.unrun, got.ended)
	}
	for share, want := range map[float64]float64{0.25: -1, 0.5: 5, 0.75: 20, 1: 9000} {
		if ms := got.percentile(share); ms != want {
			t.Errorf("percentile %v is %v ms: want %v", share, ms, want)
		}
	}
	if got.beyond(0.5) != "" || !strings.Contains(got.beyond(0.99), "2 of 4 jobs had not run") {
		t.Errorf("notes %q and %q: want none, and that 2 of 4 had not run", got.beyond(0.5), got.beyond(0.99))
	}
}

func TestCountKilled(t *testing.T) {
	r := newRecord(t, 5)
	killed := time.Now()
	before := killed.Add(-time.Second)
	r.StartAt(0, before) // ended before, and comes again
	r.End(0)
	r.StartAt(1, before) // in flight, runs again
	r.StartAt(2, before) // in flight, never comes back
	seen := snapshot(r.Slots())
	r.StartAt(0, killed.Add(time.Second))
	r.StartAt(1, killed.Add(2*time.Second))
	r.End(1)
	r.StartAt(3, killed.Add(3*time.Second)) // not started before, and comes twice
	r.StartAt(3, killed.Add(4*time.Second))
	r.End(3)

	want := killTally{lost: 2, twice: 2, inFlight: 2, again: 1, until: 2 * time.Second}
	got := countKilled(r.Slots(), seen, killed)
	got.until = got.until.Round(time.Millisecond)
	if got != want {
		t.Errorf("%+v: want %+v", got, want)
	}
}

func TestWaiting(t *testing.T) {
	from := time.Now()
	at := func(s int) time.Time { return from.Add(time.Duration(s) * time.Second) }
	w := waiting{from: from, most: 10 * time.Second, quiet: 3 * time.Second, changed: from}
	for _, step := range []struct {
		seen, second int
		over         bool
	}{
		{0, -60, false}, // long before it begins
		{0, 2, false},
		{0, 4, true}, // quiet since it began
		{1, 5, false},
		{1, 8, false},
		{1, 9, true}, // quiet since the last change
		{2, 10, false},
		{3, 11, true}, // it has gone on long enough
	} {
		if got := w.over(step.seen, at(step.second)); got != step.over {
			t.Errorf("%d seen after %d s: over is %v", step.seen, step.second, got)
		}
	}
}
