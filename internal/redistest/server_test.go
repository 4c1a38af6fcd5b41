//go:build unix

package redistest

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func configGet(t *testing.T, rdb *redis.Client, name string) string {
	t.Helper()
	values, err := rdb.ConfigGet(t.Context(), name).Result()
	if err != nil {
		t.Fatal(err)
	}
	return values[name]
}

func TestStartedServerPersistsNothingAndPublishesExpiry(t *testing.T) {
	rdb := Start(t).Client(t)
	for name, want := range map[string]string{"save": "", "appendonly": "no", "notify-keyspace-events": "xE"} {
		if got := configGet(t, rdb, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	events := rdb.Subscribe(t.Context(), "__keyevent@0__:expired")
	defer events.Close()
	if _, err := events.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), "order:42", "", time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	msg, err := events.ReceiveMessage(t.Context())
	if err != nil || msg.Payload != "order:42" {
		t.Errorf("event %v, error %v", msg, err)
	}
}

func TestArgumentsOverrideDefaults(t *testing.T) {
	rdb := Start(t, "--notify-keyspace-events", "", "--maxmemory", "1", "--save", "900 1").Client(t)
	for name, want := range map[string]string{"notify-keyspace-events": "", "maxmemory": "1", "save": "900 1"} {
		if got := configGet(t, rdb, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestEachServerHasItsOwnPortDirectoryAndProcess(t *testing.T) {
	a, b := Start(t), Start(t)
	if a.Addr() == b.Addr() || a.Dir() == b.Dir() || a.Pid() == b.Pid() {
		t.Errorf("%s %s %d and %s %s %d share something", a.Addr(), a.Dir(), a.Pid(), b.Addr(), b.Dir(), b.Pid())
	}
	opts, err := redis.ParseURL(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	if opts.Addr != b.Addr() {
		t.Errorf("URL %s names %s", b.URL(), opts.Addr)
	}
}

func TestTakenPortIsNotMistakenForTheServer(t *testing.T) {
	taken := Start(t) // another Redis, that answers PING
	ports := []int{taken.port, taken.port}
	s := newServer(t, nil).run(func() (int, error) {
		if len(ports) == 0 {
			return pickPort()
		}
		port := ports[0]
		ports = ports[1:]
		return port, nil
	})
	if s.port == taken.port || len(ports) != 0 {
		t.Errorf("started on %d with %v left to try", s.port, ports)
	}
}

func TestPortsThatAreAlwaysTakenFailTheTest(t *testing.T) {
	taken := Start(t)
	r := record(t, func(t testing.TB) {
		newServer(t, nil).run(func() (int, error) { return taken.port, nil })
	})
	if !strings.Contains(r.verdict, "5 ports in a row were taken") {
		t.Errorf("verdict %q", r.verdict)
	}
}

func TestServerWithPasswordIsReady(t *testing.T) {
	s := Start(t, "--requirepass", "secret")
	if err := s.Client(t).Ping(t.Context()).Err(); !redis.IsAuthError(err) {
		t.Errorf("without a password: %v", err)
	}
	rdb := s.Client(t, func(o *redis.Options) { o.Password = "secret" })
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestServerListensOnItsUnixSocket(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t, func(o *redis.Options) { o.Network, o.Addr = "unix", s.Socket() })
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestServerEndsWithItsTestInEveryState(t *testing.T) {
	for name, change := range map[string]func(*Server){
		"running": func(*Server) {},
		"paused":  (*Server).Pause,
		"stopped": (*Server).Stop,
		"killed":  (*Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			var s *Server
			r := record(t, func(t testing.TB) {
				s = Start(t)
				change(s)
			})
			if r.failed || r.log.Len() != 0 {
				t.Errorf("verdict %q, log %q", r.verdict, r.log.String())
			}
			if err := syscall.Kill(s.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is there still: %v", s.Pid(), err)
			}
			if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
				t.Errorf("directory is there still: %v", err)
			}
		})
	}
}

func TestFailedTestPrintsTheLog(t *testing.T) {
	r := record(t, func(t testing.TB) {
		Start(t)
		t.Errorf("something else")
	})
	if !strings.Contains(r.log.String(), "Ready to accept connections") {
		t.Errorf("log %q", r.log.String())
	}
}

func TestServerThatCannotStartFailsTheTestWithItsLog(t *testing.T) {
	r := record(t, func(t testing.TB) { Start(t, "--no-such-setting", "1") })
	if !strings.Contains(r.verdict, "ended before it answered: exit status 1") {
		t.Errorf("verdict %q", r.verdict)
	}
	if !strings.Contains(r.log.String(), "no-such-setting") {
		t.Errorf("log %q", r.log.String())
	}
}

func TestMissingRedisServerSkipsOrFailsAsAsked(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for value, failed := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv(requireEnv, value)
		r := recordAlways(t, func(t testing.TB) { Start(t) })
		if r.failed != failed || r.skipped == failed {
			t.Errorf("%s=%q: failed %v, skipped %v", requireEnv, value, r.failed, r.skipped)
		}
		if !strings.Contains(r.verdict, "apt-get install redis-server") {
			t.Errorf("%s=%q: verdict %q names no next step", requireEnv, value, r.verdict)
		}
	}
}

func TestPickedPortIsFreeAndNoPortForOutgoingConnections(t *testing.T) {
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	if port >= 32768 {
		t.Errorf("port %d could be given to a client", port)
	}
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func BenchmarkStartAndStop(b *testing.B) {
	for b.Loop() {
		Start(b).Stop()
	}
}

func BenchmarkStartAndKill(b *testing.B) {
	for b.Loop() {
		Start(b).Kill()
	}
}
