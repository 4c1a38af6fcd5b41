//go:build unix

// Package redistest runs real redis-server processes for tests: alone (Start,
// StartConfig, StartTLS), behind Sentinel (StartSentinel) and as a cluster
// (StartCluster); and a TCP proxy that fails in the ways networks fail. Only
// _test files import it.
//
// A Server is a process of its own, on a free loopback port, with a directory
// of its own that is gone after the test. It is ready when Start returns, ends
// with the test whatever state it is in, and prints its log if the test failed.
// On Linux it also ends when the test's process is killed.
//
// StartSentinel and StartCluster need a redis-server of 7.0 or newer. Without
// one on the PATH a test is skipped; with KEYFUSE_REQUIRE_REDIS=1 it fails
// instead.
//
// Nothing here works in a testing/synctest bubble: processes and sockets know
// only real time.
package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
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
	listen []string             // the arguments that the port's number ends
	admin  func() *redis.Client // on the Unix socket, for the fixtures

	mu     sync.Mutex
	proc   *process // the last one started; nil before the first
	paused bool
}

// Start starts a server and waits until it answers. It persists nothing and
// publishes expiry events; args override that and are given to redis-server as
// they are: Start(t, "--appendonly", "yes", "--maxmemory", "1").
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return newServer(t, withDefaults(args)).run(pickPort)
}

func withDefaults(args []string) []string {
	return slices.Concat([]string{"--save", "", "--appendonly", "no", "--notify-keyspace-events", "Ex"}, args)
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
	return newServer(t, slices.Concat([]string{path}, args)).run(pickPort)
}

// newServer makes a server's directory; the server runs from run on.
func newServer(t testing.TB, args []string) *Server {
	t.Helper()
	s := &Server{
		t: t, binary: findBinary(t, "redis-server"), args: args, dir: makeDir(t),
		listen: []string{"--port"},
	}
	s.admin = sync.OnceValue(func() *redis.Client { return s.Client(t, s.overSocket) })
	t.Cleanup(s.end)
	return s
}

// run starts the server on a port that pick gives, or on another where that was
// taken meanwhile, and waits until it answers.
func (s *Server) run(pick func() (int, error)) *Server {
	s.t.Helper()
	for range startAttempts {
		port, err := pick()
		if err != nil {
			s.t.Fatalf("redistest: no free port: %v", err)
		}
		s.port = port
		s.Launch()
		if err = s.await(); err == nil {
			return s
		}
		if !strings.Contains(s.Log(), "Address already in use") {
			s.t.Fatalf("redistest: redis-server on %s: %v", s.Addr(), err)
		}
	}
	s.t.Fatalf("redistest: %d ports in a row were taken before redis-server could bind them", startAttempts)
	return nil
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

// write writes a file of the server's directory and returns its path.
func (s *Server) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return path
}
