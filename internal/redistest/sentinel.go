//go:build unix

package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name under which sentinels know their master.
const MasterName = "keyfuse"

// Sentinel is a master with replicas, and the sentinels that watch them; all are
// Servers, to be killed, paused and restarted as any other. Which server is the
// master changes with failovers. Its methods may end the test, so they are for
// the test's own goroutine, while it runs.
type Sentinel struct {
	// Servers are the master at the start and then its replicas. They keep the
	// role that sentinels gave them over a restart, and data if args say so.
	Servers []*Server
	// Sentinels are the sentinels.
	Sentinels []*Server

	t testing.TB
}

// StartSentinel starts a master, its replicas and sentinels of which more than
// half must agree on a failover, and waits until all see each other and the
// replicas are synced. A server is held for dead after 1 s without an answer.
// args are given to the master and the replicas as Start's are; they can't set
// a password.
func StartSentinel(t testing.TB, replicas, sentinels int, args ...string) *Sentinel {
	t.Helper()
	c := &Sentinel{t: t}
	args = withDefaults(replicating(args))
	master := startReplica(t, "", args)
	c.Servers = append(c.Servers, master)
	host, port := master.hostPort()
	for range replicas {
		c.Servers = append(c.Servers, startReplica(t, fmt.Sprintf("replicaof %s %s\n", host, port), args))
	}
	watch := strings.Join([]string{
		"sentinel monitor " + MasterName + " " + host + " " + port + " " + strconv.Itoa(sentinels/2+1),
		"sentinel down-after-milliseconds " + MasterName + " 1000",
		"sentinel failover-timeout " + MasterName + " 3000",
		"sentinel parallel-syncs " + MasterName + " " + strconv.Itoa(max(replicas, 1)),
	}, "\n")
	for range sentinels {
		c.Sentinels = append(c.Sentinels, startWatcher(t, watch))
	}
	c.AwaitOK()
	return c
}

// startReplica keeps the role in a file, which sentinels rewrite.
func startReplica(t testing.TB, role string, args []string) *Server {
	t.Helper()
	s := newServer(t, nil)
	s.args = slices.Concat([]string{s.write("redis.conf", role)}, args)
	return s.run(pickPort)
}

func startWatcher(t testing.TB, conf string) *Server {
	t.Helper()
	s := newServer(t, nil)
	s.args = []string{s.write("sentinel.conf", conf), "--sentinel"}
	return s.run(pickPort)
}

// hurry shortens periods that are made for real networks: 10 s until INFO is
// asked again, 2 s between greetings, 30 s of distrust after a slow moment of
// the machine. A sentinel that was restarted has forgotten that.
func hurry(sentinel *Server) error {
	return sentinel.do("SENTINEL", "DEBUG", "INFO-PERIOD", 500, "PUBLISH-PERIOD", 500, "TILT-PERIOD", 1000)
}

// Addrs are the addresses of the sentinels, those that don't run included.
func (c *Sentinel) Addrs() []string { return addrs(c.Sentinels) }

// Client returns a client of the master, whichever that is, which is closed
// when t ends. Its options are go-redis's defaults, changed by opts in their
// order.
func (c *Sentinel) Client(t testing.TB, opts ...func(*redis.FailoverOptions)) *redis.Client {
	t.Helper()
	options := &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: c.Addrs()}
	for _, change := range opts {
		change(options)
	}
	return closed(t, redis.NewFailoverClient(options))
}

// Master is the master by what the first sentinel that runs says. For a while
// after its end that is a server which does not run.
func (c *Sentinel) Master() *Server {
	c.t.Helper()
	err := errors.New("no sentinel runs")
	for _, sentinel := range running(c.Sentinels) {
		var master *Server
		if master, err = c.masterBy(sentinel); err == nil {
			return master
		}
	}
	c.t.Fatalf("redistest: who is the master: %v", err)
	return nil
}

func (c *Sentinel) masterBy(sentinel *Server) (*Server, error) {
	cmd := redis.NewMapStringStringCmd(c.t.Context(), "SENTINEL", "MASTER", MasterName)
	if err := sentinel.admin().Process(c.t.Context(), cmd); err != nil {
		return nil, fmt.Errorf("asked %s: %w", sentinel.Addr(), err)
	}
	if master := at(c.Servers, fieldAddr(cmd.Val())); master != nil {
		return master, nil
	}
	return nil, fmt.Errorf("%s names %s", sentinel.Addr(), fieldAddr(cmd.Val()))
}

func fieldAddr(fields map[string]string) string { return fields["ip"] + ":" + fields["port"] }

// Failover forces a failover as an operator does, while the master runs and
// becomes a replica, and returns the new master, as AwaitMaster does. AwaitOK
// waits for the old one to be a replica.
func (c *Sentinel) Failover() *Server {
	c.t.Helper()
	old := c.Master()
	settle(c.t, "forcing a failover", func() error { // another one may be at its end still
		sentinels := running(c.Sentinels)
		if len(sentinels) == 0 {
			return errors.New("no sentinel runs")
		}
		return sentinels[0].do("SENTINEL", "FAILOVER", MasterName)
	})
	return c.AwaitMaster(old)
}

// AwaitMaster waits until every sentinel that runs names the same master, which
// is another than old and says itself that it is one; it returns that. It fails
// the test after 60 s.
func (c *Sentinel) AwaitMaster(old *Server) *Server {
	c.t.Helper()
	var master *Server
	settle(c.t, "failover from "+old.Addr(), func() (err error) {
		if master, err = c.agreed(); err != nil {
			return err
		}
		if master == old {
			return fmt.Errorf("%s is the master still", old.Addr())
		}
		return master.replication("role:master")
	})
	return master
}

// AwaitOK waits until every sentinel that runs names the same master, reaches
// the others, and sees all other servers that run as its synced replicas. It
// fails the test after 60 s.
func (c *Sentinel) AwaitOK() {
	c.t.Helper()
	settle(c.t, "the sentinels", func() error {
		for _, sentinel := range running(c.Sentinels) {
			if err := hurry(sentinel); err != nil {
				return fmt.Errorf("asked %s: %w", sentinel.Addr(), err)
			}
		}
		master, err := c.agreed()
		if err != nil {
			return err
		}
		if err := master.replication("role:master"); err != nil {
			return err
		}
		for _, sentinel := range running(c.Sentinels) {
			if err := c.sees(sentinel, master); err != nil {
				return fmt.Errorf("asked %s: %w", sentinel.Addr(), err)
			}
		}
		return nil
	})
}

// agreed is the master that all sentinels name.
func (c *Sentinel) agreed() (*Server, error) {
	var agreed *Server
	for _, sentinel := range running(c.Sentinels) {
		master, err := c.masterBy(sentinel)
		if err != nil {
			return nil, err
		}
		if agreed != nil && agreed != master {
			return nil, fmt.Errorf("sentinels name both %s and %s", agreed.Addr(), master.Addr())
		}
		agreed = master
	}
	if agreed == nil {
		return nil, errors.New("no sentinel runs")
	}
	return agreed, nil
}

// sees is nil if the sentinel knows all servers and sentinels that run.
func (c *Sentinel) sees(sentinel, master *Server) error {
	replicas, err := sentinel.list("REPLICAS")
	if err != nil {
		return err
	}
	for _, s := range running(c.Servers) {
		if s == master {
			continue
		}
		if seen := replicas[s.Addr()]; seen["flags"] != "slave" || seen["master-link-status"] != "ok" {
			return fmt.Errorf("%s is no synced replica: %q", s.Addr(), seen["flags"])
		}
	}
	others, err := sentinel.list("SENTINELS")
	if err != nil {
		return err
	}
	for _, s := range running(c.Sentinels) {
		if seen := others[s.Addr()]; s != sentinel && seen["flags"] != "sentinel" {
			return fmt.Errorf("sentinel %s is not seen: %q", s.Addr(), seen["flags"])
		}
	}
	return nil
}

// list is what a sentinel says of the others of a kind, by their address.
func (s *Server) list(kind string) (map[string]map[string]string, error) {
	cmd := redis.NewMapStringStringSliceCmd(s.t.Context(), "SENTINEL", kind, MasterName)
	if err := s.admin().Process(s.t.Context(), cmd); err != nil {
		return nil, err
	}
	out := make(map[string]map[string]string)
	for _, fields := range cmd.Val() {
		out[fieldAddr(fields)] = fields
	}
	return out, nil
}
