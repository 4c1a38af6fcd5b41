package engine_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// faults is what must hold on every Redis when something breaks.
var faults = []struct {
	name string
	test func(w *world)
}{
	{"a node that is cut off loses its run to another, and goes on under a new name", cutOffNode},
	{"runs that wait in a node that lost its lease are not started", waitingRunsOfLostLease},
	{"a job that kills its nodes ends dead, and the others run on", poisonJob},
	{"a job that runs at most once is not run again after its node died", atMostOnceAfterDeath},
	{"a claim that is not answered before a shutdown is asked for again, and its runs given back", claimUnansweredAtShutdown},
	{"runs of a claim that is never answered are free when the lease of the node that left ends", claimLostAtShutdown},
	{"lost notification flags are noticed and set again", lostFlags},
	{"flags that are lost again and again do not flood the log", flagsLostAgain},
	{"a newer format is refused", newerFormat},
	{"a job in 30 days is pending, with its TTL", thirtyDays},
	{"a fuse that is set to expire in the past is an orphan for the sweep", pastExpireAt},
	{"internal keys that expire are no jobs", internalKeys},
	{"a fuse that is revived holds its job", revivedFuse},
	{"all data are lost while a node runs, and it goes on", flushAll},
	{"a run whose outcome Redis has lost runs again", outcomeLost},
	{"a node ends when the data become another format's", formatChanges},
	{"an observer is told of calls that fail and of gaps", observerIsToldOfFaults},
}

// TestMain silences go-redis, which writes each failed dial to standard error.
func TestMain(m *testing.M) {
	logging.Disable()
	m.Run()
}

func TestFaultsInBubble(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { inBubble(t, f.test) })
	}
}

func TestFaultsOnRedis(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			onRedis(t, f.test)
		})
	}
}

// calm is a lease for tests in which a slow machine must not lose one.
const calm = 15 * time.Second

// link is a network of its own to Redis, which can be cut.
type link struct {
	dial dialer

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func (w *world) newLink() *link { return &link{dial: w.dial} }

var errUnplugged = errors.New("network is unreachable")

// Dial connects, unless the link is cut.
func (l *link) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errUnplugged}
	}
	conn, err := l.dial(ctx, network, addr)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// cut closes all connections and lets no new ones be made.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, conn := range l.conns {
		_ = conn.Close() // it may be closed already
	}
	l.conns = nil
}

func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// startVia runs an engine whose connections go through a link. At the end of
// the test the link works, so that the engine can leave.
func (w *world) startVia(l *link, reg *registry.Registry, cfg engine.Config) *node {
	w.Helper()
	n := w.startOn(w.clientVia(w.addr, l.Dial), reg, cfg)
	n.link = l
	w.Cleanup(l.heal)
	return n
}
