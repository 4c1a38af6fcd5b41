//go:build unix

package redistest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// slotCount is how many slots a cluster has.
const slotCount = 16384

// busOffset is how far a node's bus port lies above its port.
const busOffset = 10_000

// Cluster is a Redis Cluster whose nodes are Servers: kill, pause and restart
// them as any other. Which of them are masters changes with failovers. Its
// methods may end the test, so they are for the test's own goroutine, while it
// runs.
type Cluster struct {
	// Servers are all nodes. The masters at the start come first, in the order
	// of their slots, then the first master's replicas, the second's, and so on.
	Servers []*Server

	t testing.TB
}

// StartCluster starts a cluster whose masters share the slots equally, each
// with replicasEach replicas, and waits until all nodes agree that it is well
// and all replicas are synced; that takes 2 to 3 s, which Redis insists on. A
// node is held for dead after 1 s without an answer. args are given to every
// node as Start's are: "--cluster-node-timeout", "5000"; they can't set a
// password. Nothing is persisted but the nodes' own configuration, so a master
// that is killed and restarted before its replica took over comes back empty.
func StartCluster(t testing.TB, masters, replicasEach int, args ...string) *Cluster {
	t.Helper()
	defaults := []string{
		"--cluster-enabled", "yes",
		"--cluster-node-timeout", "1000",
		"--cluster-allow-replica-migration", "no", // replicas stay where the test put them
		"--repl-ping-replica-period", "1", // a replica without traffic has no offset, and is not listed
	}
	c := &Cluster{t: t}
	for range masters * (1 + replicasEach) {
		s := newServer(t, withDefaults(replicating(slices.Concat(defaults, args))))
		c.Servers = append(c.Servers, s.run(pickClusterPort))
	}
	if err := c.join(masters, replicasEach); err != nil {
		t.Fatalf("redistest: forming a cluster: %v", err)
	}
	c.AwaitOK()
	return c
}

// pickClusterPort keeps the bus port, too, below those of outgoing connections.
func pickClusterPort() (int, error) { return pickFree(endOfPorts-busOffset, busOffset) }

// join makes one cluster of nodes that know nothing yet.
func (c *Cluster) join(masters, replicasEach int) error {
	for i, s := range c.Servers {
		// Nodes that all begin at epoch 0 would spend seconds on settling who goes first.
		if err := s.do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		if i < masters {
			first, end := i*slotCount/masters, (i+1)*slotCount/masters
			if err := s.do("CLUSTER", "ADDSLOTSRANGE", first, end-1); err != nil {
				return err
			}
		}
	}
	// Each meets each: waiting for gossip to introduce them takes longer.
	for i, s := range c.Servers {
		for _, other := range c.Servers[:i] {
			if err := s.do("CLUSTER", "MEET", "127.0.0.1", other.port); err != nil {
				return err
			}
		}
	}
	for i, replica := range c.Servers[masters:] {
		if err := replicate(replica, c.Servers[i/replicasEach]); err != nil {
			return err
		}
	}
	return nil
}

// replicate waits until the replica has met its master, which it can't
// replicate before.
func replicate(replica, master *Server) error {
	id, err := master.nodeID()
	if err != nil {
		return err
	}
	return poll(settleWithin, settlePoll, nil, func() error {
		return replica.do("CLUSTER", "REPLICATE", id)
	})
}

// Addrs are the addresses of all nodes, those that don't run included.
func (c *Cluster) Addrs() []string { return addrs(c.Servers) }

// Client returns a client of the cluster that is closed when t ends. Its options
// are go-redis's defaults without maintenance notifications, changed by opts in
// their order.
func (c *Cluster) Client(t testing.TB, opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	options := &redis.ClusterOptions{
		Addrs:                    c.Addrs(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, change := range opts {
		change(options)
	}
	return closed(t, redis.NewClusterClient(options))
}

// Failover promotes one of the master's replicas as an operator does, while the
// master runs and becomes its replica, waits as AwaitOK does, and returns the
// new master.
func (c *Cluster) Failover(master *Server) *Server {
	c.t.Helper()
	replicas := running(c.Replicas(master))
	if len(replicas) == 0 {
		c.t.Fatalf("redistest: %s has no replica that runs", master.Addr())
	}
	next := replicas[0]
	if err := next.do("CLUSTER", "FAILOVER"); err != nil {
		c.t.Fatalf("redistest: CLUSTER FAILOVER on %s: %v", next.Addr(), err)
	}
	settle(c.t, "promoting "+next.Addr(), func() error {
		if !slices.Contains(c.Masters(), next) {
			return fmt.Errorf("%s is no master yet", next.Addr())
		}
		return c.ok()
	})
	return next
}

// AwaitFailover waits until the slot belongs to another master than from, and
// then as AwaitOK does; it returns that master. It does not kill or pause from:
// do that before.
func (c *Cluster) AwaitFailover(slot int, from *Server) *Server {
	c.t.Helper()
	var owner *Server
	settle(c.t, "failover from "+from.Addr(), func() (err error) {
		if owner, err = c.owner(slot); err != nil {
			return err
		}
		if owner == from {
			return fmt.Errorf("slot %d is that of %s still", slot, from.Addr())
		}
		return c.ok()
	})
	return owner
}

// AwaitOK waits until every node that runs says cluster_state:ok, reaches all
// others that run, agrees with them on roles and slots, and is synced if it is
// a replica. Stopped, killed and paused nodes are left out. It fails the test
// after 60 s.
func (c *Cluster) AwaitOK() {
	c.t.Helper()
	settle(c.t, "the cluster", c.ok)
}
