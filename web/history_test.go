package web

import (
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

func TestHistoryIsOfTheLastHour(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).Truncate(time.Minute)
	h := NewHistory(func() time.Time { return now })
	fire := func(outcome engine.Outcome, late time.Duration, attempt int) {
		h.Settled(engine.Firing{Job: registry.Job{Attempt: attempt}, Outcome: outcome, Late: late})
	}
	fire(engine.Done, time.Second, 1) // is forgotten
	now = now.Add(time.Hour)
	for range 98 {
		fire(engine.Done, time.Millisecond, 1)
	}
	fire(engine.Retried, 300*time.Millisecond, 1)
	fire(engine.Died, 300*time.Millisecond, 1)
	fire(engine.Done, time.Hour, 2) // is late by its wait
	minutes := h.minutes()
	if len(minutes) != 60 || !minutes[59].At.Equal(now) {
		t.Fatalf("%d minutes, the last at %s", len(minutes), minutes[len(minutes)-1].At)
	}
	last := minutes[59]
	if last.Fired != 101 || last.Failed != 2 || minutes[0].Fired != 0 {
		t.Errorf("fired %d, failed %d, and %d an hour ago", last.Fired, last.Failed, minutes[0].Fired)
	}
	within := func(got, want time.Duration) bool { return got >= want && got <= want*12/10 }
	if !within(last.P50, time.Millisecond) || !within(last.P99, 300*time.Millisecond) {
		t.Errorf("p50 %s, p99 %s", last.P50, last.P99)
	}
}

func TestLatenessBucketsHoldAll(t *testing.T) {
	for _, late := range []time.Duration{-time.Hour, 0, time.Nanosecond, time.Millisecond, time.Hour, 1000 * time.Hour} {
		if n := lateBucket(late); n < 0 || n >= lateBuckets {
			t.Errorf("%s is in bucket %d", late, n)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 2: "2", 2.5: "2.5", 1500: "1.5k", 2e6: "2M", 100: "100"} {
		if got := short(v); got != want {
			t.Errorf("%v is %s", v, got)
		}
	}
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.1: 2, 6: 10, 70: 100} {
		if got := niceTop(v); got < want*0.999 || got > want*1.001 {
			t.Errorf("the top for %v is %v", v, got)
		}
	}
}
