package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

func TestJudge(t *testing.T) {
	dead, after := registry.Dead(io.EOF), registry.RetryAfter(time.Minute, io.EOF)
	for what, c := range map[string]struct {
		err     error
		verdict registry.Verdict
		delay   time.Duration
	}{
		"nil":                     {nil, registry.VerdictDone, 0},
		"any error":               {io.EOF, registry.VerdictRetry, 0},
		"dead":                    {dead, registry.VerdictDead, 0},
		"discard":                 {registry.Discard(io.EOF), registry.VerdictDiscard, 0},
		"after":                   {after, registry.VerdictAfter, time.Minute},
		"after a negative time":   {registry.RetryAfter(-1, io.EOF), registry.VerdictAfter, 0},
		"after the longest time":  {registry.RetryAfter(math.MaxInt64, io.EOF), registry.VerdictAfter, math.MaxInt64},
		"after, without an error": {registry.RetryAfter(time.Second, nil), registry.VerdictAfter, time.Second},
		"wrapped":                 {fmt.Errorf("job: %w", dead), registry.VerdictDead, 0},
		"joined":                  {errors.Join(io.EOF, after), registry.VerdictAfter, time.Minute},
		"the first of two joined": {errors.Join(dead, after), registry.VerdictDead, 0},
		"the outer of two":        {registry.Discard(fmt.Errorf("x: %w", dead)), registry.VerdictDiscard, 0},
		"two in one Errorf":       {fmt.Errorf("%w and %w", after, dead), registry.VerdictAfter, time.Minute},
		"a context's end":         {context.DeadlineExceeded, registry.VerdictRetry, 0},
	} {
		verdict, delay := registry.Judge(c.err)
		if verdict != c.verdict || delay != c.delay {
			t.Errorf("%s: verdict %d after %s, want %d after %s", what, verdict, delay, c.verdict, c.delay)
		}
	}
}

func TestMarksKeepTheError(t *testing.T) {
	for _, err := range []error{registry.Dead(io.EOF), registry.Discard(io.EOF), registry.RetryAfter(1, io.EOF)} {
		if !errors.Is(err, io.EOF) || err.Error() != "EOF" {
			t.Errorf("%v is no EOF any more", err)
		}
	}
}

func TestNilStaysNilUnlessItIsToBeTriedAgain(t *testing.T) {
	if registry.Dead(nil) != nil || registry.Discard(nil) != nil {
		t.Error("a mark on nil is an error")
	}
	if err := registry.RetryAfter(time.Minute, nil); err == nil || err.Error() != "retry after 1m0s" {
		t.Errorf("got %v", err)
	}
}
