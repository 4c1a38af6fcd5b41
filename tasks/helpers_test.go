package tasks

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

var errShutdown = errors.New("shutdown")

// hostileIDs are ids that try to leave the place they are put in.
var hostileIDs = []string{
	"order:42",
	"a\r\nX-Evil: 1",
	"nul\x00nul",
	"\xff\xfe not UTF-8",
	"spaces  and\ttabs ",
	"ключ-鍵-🔑",
	"100%+1,2;\"q\"",
	"\x1b[2Jescape",
	strings.Repeat("\x80", 512),
}

func aJob() registry.Job {
	return registry.Job{
		ID: "order:42", Task: "cancel-order", Payload: []byte(`{"n":1}`),
		RunID: "run-7", Attempt: 3,
		Due:    time.Date(2026, 12, 1, 10, 0, 0, 5e6, time.FixedZone("CET", 3600)),
		Reason: registry.ReasonTimer,
	}
}

// must returns what a constructor returned, which has to be a handler.
func must(t testing.TB) func(registry.Handler, error) registry.Handler {
	return func(h registry.Handler, err error) registry.Handler {
		t.Helper()
		if err != nil {
			t.Fatalf("constructor: %v", err)
		}
		return h
	}
}

func wantVerdict(t *testing.T, err error, want registry.Verdict) time.Duration {
	t.Helper()
	got, delay := registry.Judge(err)
	if got != want {
		t.Errorf("verdict %d, want %d; error: %v", got, want, err)
	}
	return delay
}

func wantContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in: %s", part, text)
		}
	}
}

func wantWithout(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q must not be in: %s", part, text)
		}
	}
}

// logTo returns a logger of every level that writes into buf, without times.
func logTo(buf *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(buf, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}
