package measure

import (
	"errors"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func TestTimedDoesAllInOrder(t *testing.T) {
	next := 0
	p, err := timed(t.Context(), 1050, 100, time.Hour, func(from, to int) error {
		if from != next || to <= from || from%100 != 0 {
			t.Errorf("from %d to %d, after %d", from, to, next)
		}
		next = to
		return nil
	})
	if err != nil || p.done != 1050 || next != 1050 || p.rate() <= 0 {
		t.Errorf("%+v, %v: want all 1050", p, err)
	}
}

func TestTimedStops(t *testing.T) {
	p, err := timed(t.Context(), 1000, 10, time.Nanosecond, func(_, _ int) error { return nil })
	if err != nil || p.done != 10 {
		t.Errorf("%+v, %v: want the first 10", p, err)
	}
	if short("it", p, 1000) == "" || short("it", p, 10) != "" {
		t.Error("a note is missing, or there is one too many")
	}
	failed := errors.New("failed")
	if _, err := timed(t.Context(), 1000, 10, time.Hour, func(_, _ int) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v: want the error", err)
	}
}

func TestPaceNeeds(t *testing.T) {
	if got := (pace{100, time.Second}).needs(250); got != 2500*time.Millisecond {
		t.Errorf("%s: want 2.5 s", got)
	}
	if got := (pace{}).needs(1); got < time.Minute {
		t.Errorf("%s: want long, for nothing was done", got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 1000042: "1,000,042"} {
		if got := thousands(n); got != want {
			t.Errorf("%s: want %s", got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	first := time.Unix(1000, 1)
	for _, test := range []struct {
		name         string
		grain, over  time.Duration
		n, groups    int
		until, begin time.Duration // of due times, after 1000 s
	}{
		{"to the millisecond", 0, 30 * time.Second, 10_000, 1, 30*time.Second - 2*time.Millisecond, time.Millisecond},
		{"seconds", time.Second, 5 * time.Second, 1003, 5, 5 * time.Second, time.Second},
		{"fewer than moments", 100 * time.Millisecond, time.Second, 3, 3, time.Second, 100 * time.Millisecond},
		{"less than a grain", time.Second, time.Millisecond, 10, 1, time.Second, time.Second},
	} {
		groups := spread(test.grain, 7, test.n, first, test.over)
		if len(groups) != test.groups {
			t.Errorf("%s: %d groups: want %d", test.name, len(groups), test.groups)
		}
		next := 7
		for _, jobs := range groups {
			if jobs.From != next || jobs.Count == 0 {
				t.Errorf("%s: %+v after %d", test.name, jobs, next)
			}
			next += jobs.Count
		}
		if next != 7+test.n {
			t.Errorf("%s: %d jobs: want %d", test.name, next-7, test.n)
		}
		checkDue(t, test.name, groups, test.grain, time.Unix(1000, 0).Add(test.begin), time.Unix(1000, 0).Add(test.until))
	}
}

func checkDue(t *testing.T, name string, groups []way.Jobs, grain time.Duration, least, most time.Time) {
	t.Helper()
	for _, jobs := range groups {
		for i := range jobs.Count {
			due := jobs.Job(i).Due
			if due.Before(least) || due.After(most) || !due.Truncate(max(grain, time.Millisecond)).Equal(due) {
				t.Fatalf("%s: job %d is due at %s: want multiples of the grain between %s and %s", name, i, due, least, most)
			}
		}
	}
	if due := lastDue(groups); due.After(most) || due.Before(least) {
		t.Errorf("%s: the last is due at %s", name, due)
	}
}
