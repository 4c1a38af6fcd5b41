package faults

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// TestFaultSentinel has a master, a replica and three sentinels. Replication is
// asynchronous: what the load schedules waits for the replica and must outlive
// every failover; of all else the report says what was lost.
func TestFaultSentinel(t *testing.T) {
	t.Parallel()
	opts := readOptions(t, options{jobs: 1000, daemons: 2, lease: 3 * time.Second})
	s := startSentinel(t, opts.daemons)
	opts.faults = opts.atLeast(len(opts.only(s.faults)))
	h := newHarness(t, opts, s)
	h.run()
	h.report()
}

func startSentinel(t testing.TB, daemons int) site {
	t.Helper()
	group := redistest.StartSentinel(t, 1, 3, durable...)
	way := conn{Addrs: group.Addrs(), Master: redistest.MasterName}
	s := &sentinel{group}
	return site{
		daemons: slices.Repeat([]conn{way}, daemons), load: way, confirm: 1,
		admin:  group.Client(t),
		faults: slices.Concat(daemonFaults(), s.faults()),
	}
}

// sentinel is what can break of a master, its replica and its sentinels.
type sentinel struct{ group *redistest.Sentinel }

func (s *sentinel) faults() []fault {
	return []fault{
		{at: theServer, name: "master killed", apply: s.kill},
		{at: theServer, name: "master frozen", apply: s.freeze},
		{at: theServer, name: "failover forced", apply: s.force},
		{at: theServer, name: "replica killed", apply: s.killReplica},
		{at: theServer, name: "a sentinel killed", apply: s.killSentinel},
	}
}

func (s *sentinel) kill(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	master, over := s.group.Master(), h.book.note(&h.book.forgot)
	master.Kill()
	return func() error {
		s.group.AwaitMaster(master)
		h.mended = time.Now()
		master.Restart()
		s.group.AwaitOK()
		over()
		return nil
	}, nil
}

// freeze leaves a master that goes on as one when it wakes, until a sentinel tells
// it otherwise.
func (s *sentinel) freeze(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	master, over := s.group.Master(), h.book.note(&h.book.forgot)
	master.Pause()
	return func() error {
		s.group.AwaitMaster(master)
		h.mended = time.Now()
		master.Resume()
		s.group.AwaitOK()
		over()
		return nil
	}, nil
}

func (s *sentinel) force(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	over := h.book.note(&h.book.forgot)
	s.group.Failover()
	h.mended = time.Now()
	return func() error {
		s.group.AwaitOK()
		over()
		return nil
	}, nil
}

// killReplica lets nobody confirm anything.
func (s *sentinel) killReplica(*harness, *rand.Rand, time.Duration) (func() error, error) {
	master := s.group.Master()
	replica := s.group.Servers[slices.IndexFunc(s.group.Servers, func(r *redistest.Server) bool { return r != master })]
	replica.Kill()
	return func() error {
		replica.Restart()
		s.group.AwaitOK()
		return nil
	}, nil
}

func (s *sentinel) killSentinel(_ *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	one := s.group.Sentinels[rng.IntN(len(s.group.Sentinels))]
	one.Kill()
	return func() error {
		one.Restart()
		s.group.AwaitOK()
		return nil
	}, nil
}
