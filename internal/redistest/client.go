//go:build unix

package redistest

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Client returns a client of the server that is closed when t ends. Its options
// are go-redis's defaults without maintenance notifications, changed by opts in
// their order.
func (s *Server) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, s.Addr(), opts)
}

// Client returns a client that reaches the target through the proxy and is
// closed when t ends; as Server.Client otherwise.
func (p *Proxy) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, p.Addr(), opts)
}

func newClient(t testing.TB, addr string, opts []func(*redis.Options)) *redis.Client {
	t.Helper()
	options := &redis.Options{
		Addr:                     addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, change := range opts {
		change(options)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() {
		// The test may have closed it: closing twice is no failure.
		_ = client.Close()
	})
	return client
}

// CLI runs one command in redis-cli, as a person would type it, and returns
// what it prints without the last newline. It fails the test if redis-cli does,
// and skips or fails it if there is none, as Start does.
func (s *Server) CLI(args ...string) string {
	s.t.Helper()
	argv := append([]string{"-e", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port)}, args...)
	out, err := exec.CommandContext(s.t.Context(), findBinary(s.t, "redis-cli"), argv...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("redistest: redis-cli %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}
