//go:build unix

package redistest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	settleWithin = 60 * time.Second // failovers and elections that are tried again
	settlePoll   = 20 * time.Millisecond
)

// settle waits for what takes several servers, and fails the test if it does
// not come.
func settle(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := poll(settleWithin, settlePoll, nil, check); err != nil {
		t.Fatalf("redistest: %s: %v", what, err)
	}
}

// poll calls check every so often until it returns nil, and gives up when the
// time is over or ended is closed; nil is never closed.
func poll(within, every time.Duration, ended <-chan struct{}, check func() error) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return err
		case <-deadline.C:
			return fmt.Errorf("not ready within %s: %w", within, err)
		case <-tick.C:
		}
	}
}

// running are those of the servers that are up.
func running(servers []*Server) []*Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s *Server) bool { return !s.up() })
}

// at is the server with this address, or nil.
func at(servers []*Server, addr string) *Server {
	i := slices.IndexFunc(servers, func(s *Server) bool { return s.Addr() == addr })
	if i < 0 {
		return nil
	}
	return servers[i]
}

func addrs(servers []*Server) []string {
	out := make([]string, len(servers))
	for i, s := range servers {
		out[i] = s.Addr()
	}
	return out
}

// replicating lets a replica sync at once, and leave no snapshot behind that a
// restart would load.
func replicating(args []string) []string {
	return slices.Concat([]string{"--repl-diskless-sync-delay", "0", "--rdb-del-sync-files", "yes"}, args)
}

// replication is nil if INFO replication has one of the lines.
func (s *Server) replication(lines ...string) error {
	if !s.up() {
		return fmt.Errorf("%s does not run", s.Addr())
	}
	info, err := s.admin().Info(s.t.Context(), "replication").Result()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(info, line) }) {
		return nil
	}
	return fmt.Errorf("%s does not say %s yet", s.Addr(), strings.Join(lines, " or "))
}

// hostPort is the address as Redis's commands want it, in two arguments.
func (s *Server) hostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr())
	return host, port
}
