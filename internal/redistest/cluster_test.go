//go:build unix

package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// someKeys returns a key of each of 100 or so slots, all over the cluster.
func someKeys() []string {
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprintf("order:%d", i)
	}
	return keys
}

// setAll also waits until a replica of each has it.
func setAll(t *testing.T, rdb *redis.ClusterClient, masters []*Server) {
	t.Helper()
	for _, key := range someKeys() {
		if err := rdb.Set(t.Context(), key, "of "+key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, master := range masters {
		if n, err := master.Client(t).Wait(t.Context(), 1, settleWithin).Result(); n != 1 || err != nil {
			t.Fatalf("%d replicas have it, error %v", n, err)
		}
	}
}

func wantAll(t *testing.T, rdb *redis.ClusterClient) {
	t.Helper()
	for _, key := range someKeys() {
		if got, err := rdb.Get(t.Context(), key).Result(); got != "of "+key || err != nil {
			t.Errorf("%s holds %q, error %v", key, got, err)
		}
	}
}

func slotOf(t *testing.T, c *Cluster, key string) int {
	t.Helper()
	slot, err := c.Servers[0].Client(t).ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(slot)
}

func TestClusterSharesSlotsAndHasSyncedReplicas(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	if got := c.Masters(); !slices.Equal(got, c.Servers[:3]) {
		t.Errorf("masters %v", addrs(got))
	}
	total := 0
	for i, master := range c.Servers[:3] {
		if got := c.Replicas(master); !slices.Equal(got, c.Servers[3+i:4+i]) {
			t.Errorf("replicas of %s: %v", master.Addr(), addrs(got))
		}
		slots := c.Slots(master)
		total += len(slots)
		for _, slot := range []int{slots[0], slots[len(slots)-1]} {
			if got := c.Master(slot); got != master {
				t.Errorf("slot %d is that of %s, want %s", slot, got.Addr(), master.Addr())
			}
		}
	}
	if total != slotCount {
		t.Errorf("%d slots are owned", total)
	}
	rdb := c.Client(t)
	setAll(t, rdb, c.Servers[:3])
	wantAll(t, rdb)
	wantAll(t, c.Client(t, func(o *redis.ClusterOptions) { o.ReadOnly = true }))
}

func TestClusterOfOneMasterTakesArguments(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1, 0, "--cluster-node-timeout", "5000", "--maxmemory-policy", "noeviction")
	if got := configGet(t, c.Servers[0].Client(t), "cluster-node-timeout"); got != "5000" {
		t.Errorf("cluster-node-timeout is %s", got)
	}
	if err := c.Client(t).Set(t.Context(), "order:42", "", 0).Err(); err != nil {
		t.Error(err)
	}
}

func TestKilledMastersReplicaTakesOverWithItsKeys(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	rdb := c.Client(t)
	setAll(t, rdb, c.Servers[:3])
	slot := slotOf(t, c, "order:42")
	old := c.Master(slot)
	replica := c.Replicas(old)[0]
	old.Kill()
	if next := c.AwaitFailover(slot, old); next != replica {
		t.Errorf("%s took over, want %s", next.Addr(), replica.Addr())
	}
	wantAll(t, c.Client(t)) // rdb would go on dialing the dead master until it looks again, after a minute

	old.Restart()
	c.AwaitOK()
	if got := c.Replicas(replica); !slices.Equal(got, []*Server{old}) {
		t.Errorf("after its restart the old master is none of the new one's replicas %v", addrs(got))
	}
}

func TestPausedMasterIsReplacedAndJoinsAgain(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	slot := c.Slots(c.Servers[1])[0]
	c.Servers[1].Pause()
	next := c.AwaitFailover(slot, c.Servers[1])
	if next != c.Servers[4] {
		t.Errorf("%s took over", next.Addr())
	}
	c.Servers[1].Resume()
	c.AwaitOK()
	if got := c.Master(slot); got != next {
		t.Errorf("back with %s", got.Addr())
	}
}

func TestClusterFailoverByHandKeepsTheOldMasterAsReplica(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	rdb := c.Client(t)
	setAll(t, rdb, c.Servers[:3])
	slots := c.Slots(c.Servers[0])
	next := c.Failover(c.Servers[0])
	if got := c.Slots(next); !slices.Equal(got, slots) {
		t.Errorf("%d slots went over, want %d", len(got), len(slots))
	}
	if got := c.Replicas(next); !slices.Equal(got, []*Server{c.Servers[0]}) {
		t.Errorf("its replicas: %v", addrs(got))
	}
	wantAll(t, rdb)
}

func TestClusterEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var c *Cluster
	r := record(t, func(t testing.TB) {
		c = StartCluster(t, 1, 1)
		t.Errorf("something else")
	})
	for _, s := range c.Servers {
		if err := syscall.Kill(s.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is there still: %v", s.Pid(), err)
		}
		if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
			t.Errorf("directory is there still: %v", err)
		}
		if !strings.Contains(r.log.String(), "log of redis-server on "+s.Addr()) {
			t.Errorf("no log of %s", s.Addr())
		}
	}
}

func TestClusterPortWhoseBusPortIsTakenIsNotUsed(t *testing.T) {
	t.Parallel()
	port, err := pickClusterPort()
	if err != nil {
		t.Fatal(err)
	}
	if port+busOffset >= endOfPorts {
		t.Errorf("bus port %d could be given to a client", port+busOffset)
	}
	bus, err := net.Listen("tcp4", loopback(port+busOffset))
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	first := port
	s := newServer(t, []string{"--cluster-enabled", "yes"}).run(func() (int, error) {
		if p := first; p != 0 {
			first = 0
			return p, nil
		}
		return pickClusterPort()
	})
	if s.port == port {
		t.Errorf("started on %d", port)
	}
}
