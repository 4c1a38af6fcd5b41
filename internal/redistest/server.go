//go:build unix

// Package redistest runs real redis-server processes for tests, and a TCP
// proxy that fails in the ways networks fail. Only _test files import it.
//
// A Server is a process of its own, on a free loopback port, with a directory
// of its own that is gone after the test. It is ready when Start returns, ends
// with the test whatever state it is in, and prints its log if the test failed.
// On Linux it also ends when the test's process is killed.
//
// Without a redis-server on the PATH a test is skipped; with
// KEYFUSE_REQUIRE_REDIS=1 it fails instead.
//
// Nothing here works in a testing/synctest bubble: processes and sockets know
// only real time.
package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// requireEnv turns the skip for a missing redis-server into a failure.
const requireEnv = "KEYFUSE_REQUIRE_REDIS"

// startAttempts is how many ports are tried, since another process may take a
// port between its being picked and redis-server's binding it.
const startAttempts = 5

// Server is a redis-server on a port and in a directory that stay the same for
// as long as the test runs; the process may end and be started again. Its
// methods may be called from any goroutine, but those that can end the test
// (Launch, Await, Restart, Client, CLI) only from the test's own.
type Server struct {
	t      testing.TB
	binary string
	port   int
	dir    string
	args   []string

	mu   sync.Mutex
	proc *process // the last one started; nil before the first
}

// Start starts a server and waits until it answers. It persists nothing and
// publishes expiry events; args override that and are given to redis-server as
// they are: Start(t, "--appendonly", "yes", "--maxmemory", "1").
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	defaults := []string{"--save", "", "--appendonly", "no", "--notify-keyspace-events", "Ex"}
	return start(t, pickPort, slices.Concat(defaults, args))
}

// StartConfig starts a server from a configuration file and waits until it
// answers. Only the port and the directories are not as the file says, and
// what args override.
func StartConfig(t testing.TB, file string, args ...string) *Server {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return start(t, pickPort, slices.Concat([]string{path}, args))
}

func start(t testing.TB, pick func() (int, error), args []string) *Server {
	t.Helper()
	s := &Server{t: t, binary: findBinary(t, "redis-server"), args: args, dir: makeDir(t)}
	t.Cleanup(s.end)
	for range startAttempts {
		port, err := pick()
		if err != nil {
			t.Fatalf("redistest: no free port: %v", err)
		}
		s.port = port
		s.Launch()
		if err = s.await(); err == nil {
			return s
		}
		if !strings.Contains(s.Log(), "Address already in use") {
			t.Fatalf("redistest: redis-server on %s: %v", s.Addr(), err)
		}
	}
	t.Fatalf("redistest: %d ports in a row were taken before redis-server could bind them", startAttempts)
	return nil
}

func findBinary(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	install := "no " + name + " on the PATH: apt-get install redis-server, or brew install redis"
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf("redistest: %s (%s=1 forbids to skip)", install, requireEnv)
	}
	t.Skipf("redistest: %s", install)
	return ""
}

// makeDir is no t.TempDir: that one's path holds the test's name, and a Unix
// socket's path may have some 100 bytes only.
func makeDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "keyfuse-redis-")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("redistest: %v", err)
		}
	})
	return dir
}

// pickPort picks below the ports that systems give to outgoing connections: a
// client that redials a stopped server could be given the server's own port,
// connect to itself and keep it.
func pickPort() (int, error) {
	const lowest, end = 10_000, 32_000
	var err error
	for range 100 {
		port := lowest + rand.IntN(end-lowest)
		var l net.Listener
		if l, err = net.Listen("tcp4", loopback(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Addr is the server's host:port, with an IP address as the host.
func (s *Server) Addr() string { return loopback(s.port) }

// URL is the server's redis:// URL, for database 0.
func (s *Server) URL() string { return fmt.Sprintf("redis://%s/0", s.Addr()) }

// Socket is the path of the server's Unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// Dir is the server's directory, with its RDB and AOF files.
func (s *Server) Dir() string { return s.dir }

// Log is what all processes of this server have printed so far.
func (s *Server) Log() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil && !os.IsNotExist(err) {
		return "redistest: " + err.Error()
	}
	return string(log)
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "redis.log") }
