//go:build unix

package redistest

import (
	"io"
	"os/exec"
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
	return closed(t, redis.NewClient(options))
}

// closed closes the client when t ends.
func closed[C io.Closer](t testing.TB, client C) C {
	t.Cleanup(func() {
		// The test may have closed it: closing twice is no failure.
		_ = client.Close()
	})
	return client
}

// overSocket reaches a server of any kind, TLS or not, and fails soon if it
// does not run.
func (s *Server) overSocket(o *redis.Options) {
	o.Network, o.Addr = "unix", s.Socket()
	o.DialerRetries = 1
}

// do sends the server one command on its Unix socket.
func (s *Server) do(args ...any) error { return s.admin().Do(s.t.Context(), args...).Err() }

// CLI runs one command in redis-cli, as a person would type it, and returns
// what it prints without the last newline. It fails the test if redis-cli does,
// and skips or fails it if there is none, as Start does.
func (s *Server) CLI(args ...string) string {
	s.t.Helper()
	argv := append([]string{"-e", "-s", s.Socket()}, args...)
	out, err := exec.CommandContext(s.t.Context(), findBinary(s.t, "redis-cli"), argv...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("redistest: redis-cli %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}
