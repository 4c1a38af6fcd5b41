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

// serving is a daemon within the test.
type serving struct {
	*logBuffer
	stop context.CancelFunc
	code chan int
}

// startServe runs a daemon with one task, t, in a folder of its own.
func startServe(t *testing.T, redisURL string) serving {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.yaml", []byte("tasks: {t: {log: {}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := serving{newLogBuffer(), cancel, make(chan int, 1)}
	go func() {
		s.code <- run(ctx, []string{"keyfuse", "serve", "--http", "off", "--log-level", "debug"}, only("KEYFUSE_REDIS_URL", redisURL), strings.NewReader(""), new(bytes.Buffer), s)
	}()
	return s
}

// only is an environment of one variable.
func only(name, value string) func(string) (string, bool) {
	return func(asked string) (string, bool) { return value, asked == name }
}

func (s serving) end(t *testing.T) {
	t.Helper()
	s.stop()
	if got := <-s.code; got != exitDone {
		t.Errorf("exit code %d after a clean stop:\n%s", got, s)
	}
}

func TestServeWaitsForARedisThatIsAway(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	daemon := startServe(t, server.URL())
	daemon.await(t, "waiting for Redis")
	server.Restart()
	daemon.await(t, "msg=ready")
	daemon.end(t)
}

func TestServeStopsWhileItWaitsForRedis(t *testing.T) {
	daemon := startServe(t, "redis://127.0.0.1:1")
	daemon.await(t, "waiting for Redis")
	daemon.end(t)
}

func TestServeWaitsForARedisThatLoads(t *testing.T) {
	server := redistest.Start(t, "--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024")
	server.CLI("SET", "class:a", "t")
	server.CLI("EVAL", "for i = 1, 2000 do redis.call('SET', i, string.rep('x', 500)) end", "0") // 20 s, in small parts
	server.CLI("SAVE")
	server.Kill()
	server.Launch()
	daemon := startServe(t, server.URL())
	daemon.await(t, "LOADING Redis is loading the dataset in memory; it is reading its data: try again when it is done")
	server.CLI("CONFIG", "SET", "key-load-delay", "0")
	daemon.await(t, "msg=ready")
	daemon.await(t, "msg=fired id=a")
	daemon.end(t)
}
