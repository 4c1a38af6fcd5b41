package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

func TestBackoffGrowsWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := registry.Retries{Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter")}
		r.Initial = time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "initial"))
		r.MaxDelay = time.Duration(rapid.Int64Range(int64(r.Initial), int64(3650*24*time.Hour)).Draw(t, "max"))
		attempt := rapid.OneOf(rapid.IntRange(1, 70), rapid.Just(1_000_000), rapid.Just(math.MaxInt)).Draw(t, "attempt")

		middle := float64(r.MaxDelay)
		if attempt < 64 {
			middle = min(middle, float64(r.Initial)*math.Exp2(float64(attempt-1)))
		}
		// Halving MaxDelay rounds: so near to it, the wait may be MaxDelay early.
		low, high := middle*(1-r.Jitter)-2, min(middle+2, float64(r.MaxDelay))*(1+r.Jitter)+2
		if wait := float64(backoff(r, attempt)); wait < low || wait > high {
			t.Fatalf("%s, want from %s to %s", time.Duration(wait), time.Duration(low), time.Duration(high))
		}
	})
}

func TestAFullInboxForgetsAndAsksForASweep(t *testing.T) {
	b := newInbox()
	id := strings.Repeat("x", 512)
	fits := maxInbox/(len(id)+idOverhead) + 1 // the one that crosses the bound is kept
	for range fits {
		b.add(id)
	}
	ids, lost := b.takeAll()
	if lost || len(ids) != fits {
		t.Fatalf("%d of %d ids kept, lost %v", len(ids), fits, lost)
	}
	for range fits + 1 {
		b.add(id)
	}
	if ids, lost = b.takeAll(); !lost || len(ids) != fits {
		t.Fatalf("%d of %d ids kept, lost %v", len(ids), fits, lost)
	}
	if ids, lost = b.takeAll(); lost || len(ids) != 0 {
		t.Fatalf("emptied, it holds %d ids, lost %v", len(ids), lost)
	}
}

func TestLongPayloadsThatStayAreSettledAFewAtATime(t *testing.T) {
	of := func(task string, o Outcome, payload int) outcome {
		return outcome{run: wire.Run{Task: task, Payload: make([]byte, payload)}, Firing: Firing{Outcome: o}}
	}
	for _, c := range []struct {
		what   string
		first  outcome
		second outcome
		want   int
	}{
		{"short", of("a", Died, 10), of("a", Died, 10), wire.MaxSettle},
		{"long", of("a", Died, settleBytes/4), of("a", Retried, settleBytes/4), 5},
		{"longest", of("a", Died, settleBytes+1), of("a", Died, 10), 1},
		{"long, but removed", of("a", Done, settleBytes), of("a", Discarded, settleBytes), wire.MaxSettle},
		{"another task", of("a", Died, 10), of("b", Died, 10), 1},
		{"another kind", of("a", Done, 10), of("a", Died, 10), 1},
	} {
		outcomes := append([]outcome{c.first}, slices.Repeat([]outcome{c.second}, wire.MaxSettle)...)
		if got := groupLen(outcomes); got != c.want {
			t.Errorf("%s: %d together, want %d", c.what, got, c.want)
		}
	}
	if got := groupLen([]outcome{of("a", Done, 10)}); got != 1 {
		t.Errorf("the last one: %d", got)
	}
}

func TestTroublesOfPartitionsAreLoggedOnceUntilTheyChange(t *testing.T) {
	var out strings.Builder
	noted := troubles{log: slog.New(slog.NewTextHandler(&out, nil))}
	reset := func(port int) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: errors.New("connection reset by peer")}
	}
	for port := range 10 {
		noted.note("claiming", port%3, fmt.Errorf("try: %w", reset(port)))
	}
	noted.note("settling", 0, reset(1))
	noted.note("claiming", 1, errors.New("READONLY"))
	for range 10 {
		for partition := range 3 {
			noted.note("claiming", partition, nil)
		}
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		what, _, _ := strings.Cut(line[strings.Index(line, "msg="):], " err=")
		got = append(got, strings.TrimSpace(what))
	}
	want := []string{
		`msg="redis fails; trying on" for=claiming`,
		`msg="redis fails; trying on" for=settling`,
		`msg="redis fails; trying on" for=claiming`,
		`msg="redis works again" for=claiming`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
