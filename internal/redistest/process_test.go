//go:build unix

package redistest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// once makes a client that gives up at the first failure, and at its context's
// deadline.
func once(o *redis.Options) {
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
}

// wantNoAnswer pings for long enough that a server which runs would answer.
func wantNoAnswer(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := rdb.Ping(ctx).Err()
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestRestartKeepsThePortAndWhatTheAOFKept(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "order:42", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr, pid := s.Addr(), s.Pid()
	s.Kill()
	s.Restart()
	if s.Addr() != addr || s.Pid() == pid {
		t.Errorf("restarted %s pid %d as %s pid %d", addr, pid, s.Addr(), s.Pid())
	}
	if got, err := rdb.Get(t.Context(), "order:42").Result(); got != "kept" {
		t.Errorf("after the restart: %q, %v", got, err)
	}
}

func TestRestartOfARunningServerLosesWhatWasNotPersisted(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "order:42", "lost", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if n, err := rdb.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
}

func TestStoppedServerRefusesConnections(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t, once)
	s.Stop()
	s.Stop() // again changes nothing
	if err := rdb.Ping(t.Context()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("ping: %v", err)
	}
	if !strings.Contains(s.Log(), "Redis is now ready to exit") {
		t.Errorf("not an orderly end:\n%s", s.Log())
	}
}

func TestPausedServerAnswersNothingUntilResumed(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t, once)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	wantNoAnswer(t, rdb)
	s.Resume()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("resumed: %v", err)
	}
}

func TestLaunchedServerCanBeMetWhileItLoads(t *testing.T) {
	s := Start(t, "--rdbcompression", "no",
		"--key-load-delay", "5000", // 5 ms a key
		"--loading-process-events-interval-bytes", "1024") // answers after each
	rdb := s.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	for i := range 100 {
		if err := rdb.Set(t.Context(), strconv.Itoa(i), strings.Repeat("x", 1024), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdb.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Launch()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for err := error(syscall.ECONNREFUSED); !redis.IsLoadingError(err); <-tick.C {
		if err = rdb.Ping(t.Context()).Err(); err == nil {
			t.Fatal("it was ready before it was seen loading")
		}
	}
	s.Await()
	if n, err := rdb.DBSize(t.Context()).Result(); n != 100 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
}

func TestLaunchOfARunningServerFailsTheTest(t *testing.T) {
	r := record(t, func(t testing.TB) { Start(t).Launch() })
	if !strings.Contains(r.verdict, "Launch of a server that runs") {
		t.Errorf("verdict %q", r.verdict)
	}
}

func TestCLITypesACommand(t *testing.T) {
	s := Start(t)
	if got := s.CLI("SET", "order:42", "order:42", "EX", "1800"); got != "OK" {
		t.Errorf("redis-cli printed %q", got)
	}
	if got := s.CLI("TTL", "order:42"); got != "1800" {
		t.Errorf("redis-cli printed %q", got)
	}
}

func TestCLIErrorFailsTheTest(t *testing.T) {
	r := record(t, func(t testing.TB) { Start(t).CLI("NO-SUCH-COMMAND") })
	if !strings.Contains(r.verdict, "unknown command") {
		t.Errorf("verdict %q", r.verdict)
	}
}
