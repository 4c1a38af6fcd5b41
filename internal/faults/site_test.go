package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// site is a Redis under test, whatever it is made of, with what can break there.
type site struct {
	daemons []conn
	load    conn
	// admin is a way to Redis that no fault closes while a server runs.
	admin  redis.UniversalClient
	faults []fault
	// confirm is how many replicas must have what the load schedules.
	confirm int
	skew    time.Duration // Redis's clock minus the machine's
}

// masters calls each for every server that holds data.
func (s site) masters(ctx context.Context, each func(ctx context.Context, server *redis.Client) error) error {
	if cluster, ok := s.admin.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, each)
	}
	return each(ctx, s.admin.(*redis.Client))
}

// fault is something that breaks. apply breaks it and gives what mends it, which
// is called once the fault has lasted for as long as was drawn.
type fault struct {
	name  string
	at    part
	apply breaking
	long  bool // it always lasts longer than a lease
}

// part is what a fault breaks. Two at once break different parts.
type part int

const (
	theDaemon part = iota
	theServer
	theNetwork
)

type breaking func(h *harness, rng *rand.Rand, hold time.Duration) (heal func() error, err error)

// standalone is one server. Each daemon and the load reach it through a proxy of
// their own, under users of their own.
type standalone struct {
	server  *redistest.Server
	proxies []*redistest.Proxy // a daemon each
	way     *redistest.Proxy   // the load's
}

// Users of the Redis under test.
const (
	daemonUser = "daemon"
	loadUser   = "load"
	password   = "open-sesame"
)

// durable are a server's settings: what it acknowledged is on disk. A master that
// was killed and came back empty would lose everything if it became one again.
var durable = []string{
	"--appendonly", "yes", "--appendfsync", "always",
	"--notify-keyspace-events", "", // daemons turn them on, also after each restart
}

func startStandalone(t testing.TB, daemons int, skew time.Duration) site {
	t.Helper()
	server := redistest.Start(t, slices.Concat(durable, []string{
		"--save", "3600 100000000", // none by itself, and yet a failed one forbids writes
		"--busy-reply-threshold", "200",
		"--user", daemonUser, "on", ">" + password, "~*", "&*", "+@all",
		"--user", loadUser, "on", ">" + password, "~*", "&*", "+@all",
	})...)
	s := &standalone{server: server, way: redistest.NewProxy(t, server.Addr())}
	out := site{
		load:   conn{Addrs: []string{server.Addr()}, Username: loadUser, Password: password, Via: map[string]string{server.Addr(): s.way.Addr()}},
		skew:   skew,
		faults: slices.Concat(daemonFaults(), s.faults(), s.networkFaults()),
	}
	for range daemons {
		proxy := redistest.NewProxy(t, server.Addr())
		s.proxies = append(s.proxies, proxy)
		out.daemons = append(out.daemons, conn{
			Addrs: []string{server.Addr()}, Username: daemonUser, Password: password, Via: map[string]string{server.Addr(): proxy.Addr()},
		})
	}
	out.admin = server.Client(t, func(o *redis.Options) { o.Network, o.Addr = "unix", server.Socket() })
	return out
}
