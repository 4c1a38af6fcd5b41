package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// logBuffer is what a daemon logs, and a way to wait for a line of it.
type logBuffer struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{} // capacity 1
}

func newLogBuffer() *logBuffer { return &logBuffer{wrote: make(chan struct{}, 1)} }

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) await(t *testing.T, words string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(b.String(), words) {
		select {
		case <-b.wrote:
		case <-deadline:
			t.Fatalf("the daemon never logged %q:\n%s", words, b)
		}
	}
}

func TestServeWaitsForARedisThatIsAway(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.yaml", []byte("tasks: {t: {log: {}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	server.Stop()
	env := func(name string) (string, bool) {
		if name == "KEYFUSE_REDIS_URL" {
			return server.URL(), true
		}
		return "", false
	}
	ctx, cancel := context.WithCancel(t.Context())
	log, code := newLogBuffer(), make(chan int)
	go func() {
		code <- run(ctx, []string{"keyfuse", "serve"}, env, strings.NewReader(""), new(bytes.Buffer), log)
	}()
	log.await(t, "waiting for Redis")
	server.Restart()
	log.await(t, "msg=ready")
	cancel()
	if got := <-code; got != exitDone {
		t.Errorf("exit code %d after a clean stop:\n%s", got, log)
	}
}

func TestServeStopsWhileItWaitsForRedis(t *testing.T) {
	t.Chdir(t.TempDir())
	env := func(name string) (string, bool) { return "redis://127.0.0.1:1", name == "KEYFUSE_REDIS_URL" }
	ctx, cancel := context.WithCancel(t.Context())
	log, code := newLogBuffer(), make(chan int)
	go func() {
		code <- run(ctx, []string{"keyfuse", "serve"}, env, strings.NewReader(""), new(bytes.Buffer), log)
	}()
	log.await(t, "waiting for Redis")
	cancel()
	if got := <-code; got != exitDone {
		t.Errorf("exit code %d:\n%s", got, log)
	}
}
