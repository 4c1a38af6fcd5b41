package faults

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// TestFaultCluster has three masters with a replica each. A failover that an
// operator makes and slots that move may lose nothing. One that follows a killed
// master may lose what its replica had not confirmed, as with Sentinel.
func TestFaultCluster(t *testing.T) {
	t.Parallel()
	opts := readOptions(t, options{jobs: 1000, daemons: 2, lease: 3 * time.Second})
	s := startCluster(t, opts.daemons)
	opts.faults = opts.atLeast(len(opts.only(s.faults)))
	h := newHarness(t, opts, s)
	h.run()
	h.report()
}

func startCluster(t testing.TB, daemons int) site {
	t.Helper()
	group := redistest.StartCluster(t, 3, 1, durable...)
	way := conn{Addrs: group.Addrs(), Cluster: true}
	s := &cluster{group}
	return site{
		daemons: slices.Repeat([]conn{way}, daemons), load: way, confirm: 1,
		admin:  group.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true }),
		faults: slices.Concat(daemonFaults(), s.faults()),
	}
}

// cluster is what can break of a cluster.
type cluster struct{ group *redistest.Cluster }

func (c *cluster) faults() []fault {
	return []fault{
		{at: theServer, name: "master killed", apply: c.kill},
		{at: theServer, name: "master frozen", apply: c.freeze},
		{at: theServer, name: "master replaced", apply: c.failover},
		{at: theServer, name: "replica killed", apply: c.killReplica},
		{at: theServer, name: "slots moved", apply: c.reshard},
	}
}

// one draws a master that has slots, and one of them.
func (c *cluster) one(rng *rand.Rand) (*redistest.Server, int) {
	masters := slices.DeleteFunc(c.group.Masters(), func(s *redistest.Server) bool { return len(c.group.Slots(s)) == 0 })
	master := masters[rng.IntN(len(masters))]
	return master, c.group.Slots(master)[0]
}

func (c *cluster) kill(h *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	master, slot := c.one(rng)
	over := h.book.note(&h.book.forgot)
	master.Kill()
	return func() error {
		c.group.AwaitFailover(slot, master)
		h.mended = time.Now()
		master.Restart()
		c.group.AwaitOK()
		over()
		return nil
	}, nil
}

func (c *cluster) freeze(h *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	master, slot := c.one(rng)
	over := h.book.note(&h.book.forgot)
	master.Pause()
	return func() error {
		c.group.AwaitFailover(slot, master)
		h.mended = time.Now()
		master.Resume()
		c.group.AwaitOK()
		over()
		return nil
	}, nil
}

// failover waits for the replica to have everything.
func (c *cluster) failover(_ *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	master, _ := c.one(rng)
	c.group.Failover(master)
	return mended, nil
}

func (c *cluster) killReplica(_ *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	master, _ := c.one(rng)
	replica := c.group.Replicas(master)[0]
	replica.Kill()
	return func() error {
		replica.Restart()
		c.group.AwaitOK()
		return nil
	}, nil
}

// reshard moves a third of a master's slots to another one, among them those of
// partitions.
func (c *cluster) reshard(h *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	from, _ := c.one(rng)
	others := slices.DeleteFunc(c.group.Masters(), func(s *redistest.Server) bool { return s == from })
	slots := c.group.Slots(from)
	rng.Shuffle(len(slots), func(i, k int) { slots[i], slots[k] = slots[k], slots[i] })
	defer h.book.note(&h.book.moved)()
	c.group.MoveSlots(from, others[rng.IntN(len(others))], slots[:len(slots)/3]...)
	return func() error {
		c.group.AwaitOK()
		return nil
	}, nil
}
