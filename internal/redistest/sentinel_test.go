//go:build unix

package redistest

import (
	"slices"
	"testing"
	"time"
)

func TestSentinelsNameTheMasterAndSeeItsReplicas(t *testing.T) {
	t.Parallel()
	c := StartSentinel(t, 2, 3)
	if got := c.Master(); got != c.Servers[0] {
		t.Errorf("master %s", got.Addr())
	}
	rdb := c.Client(t)
	if err := rdb.Set(t.Context(), "order:42", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.Wait(t.Context(), 2, 10*time.Second).Result(); n != 2 || err != nil {
		t.Errorf("%d replicas have it, error %v", n, err)
	}
	for _, sentinel := range c.Sentinels {
		if got := sentinel.CLI("SENTINEL", "CKQUORUM", MasterName); got != "OK 3 usable Sentinels. Quorum and failover authorization can be reached" {
			t.Errorf("quorum: %s", got)
		}
	}
}

func TestKilledMasterIsReplacedAndComesBackAsAReplica(t *testing.T) {
	t.Parallel()
	c := StartSentinel(t, 1, 3)
	rdb := c.Client(t)
	if err := rdb.Set(t.Context(), "order:42", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.Wait(t.Context(), 1, 10*time.Second).Result(); n != 1 || err != nil {
		t.Fatalf("%d replicas have it, error %v", n, err)
	}
	old := c.Master()
	old.Kill()
	next := c.AwaitMaster(old)
	if next != c.Servers[1] {
		t.Errorf("%s took over", next.Addr())
	}
	if got, err := rdb.Get(t.Context(), "order:42").Result(); got != "kept" || err != nil {
		t.Errorf("after the failover: %q, %v", got, err)
	}
	old.Restart()
	c.AwaitOK()
	if got, err := old.Client(t).Get(t.Context(), "order:42").Result(); got != "kept" || err != nil {
		t.Errorf("the old master, now a replica: %q, %v", got, err)
	}
}

func TestForcedFailoverThereAndBack(t *testing.T) {
	t.Parallel()
	c := StartSentinel(t, 1, 3)
	first := c.Master()
	second := c.Failover()
	if second == first {
		t.Fatalf("%s is the master still", first.Addr())
	}
	c.AwaitOK()
	if third := c.Failover(); third != first {
		t.Errorf("%s took over, want %s", third.Addr(), first.Addr())
	}
}

func TestServersKeepTheRoleThatSentinelsGaveThemAndNoData(t *testing.T) {
	t.Parallel()
	c := StartSentinel(t, 1, 3)
	old, next := c.Master(), c.Failover()
	if err := next.Client(t).Set(t.Context(), "order:42", "lost", 0).Err(); err != nil {
		t.Fatal(err)
	}
	c.AwaitOK() // the old one may have synced once more, with the key
	for _, s := range c.Servers {
		s.Kill()
	}
	// The replica first: were the roles lost, both would say something else.
	old.Restart()
	next.Restart()
	c.AwaitOK()
	if got := c.Master(); got != next {
		t.Errorf("master %s, want %s", got.Addr(), next.Addr())
	}
	for _, s := range c.Servers {
		if n, err := s.Client(t).DBSize(t.Context()).Result(); n != 0 || err != nil {
			t.Errorf("%s loaded %d keys from somewhere, error %v", s.Addr(), n, err)
		}
	}
}

func TestFailoverWithoutOneOfTheSentinels(t *testing.T) {
	t.Parallel()
	c := StartSentinel(t, 1, 3)
	c.Sentinels[0].Kill()
	old := c.Master()
	old.Pause()
	next := c.AwaitMaster(old)
	old.Resume()
	c.Sentinels[0].Restart()
	c.AwaitOK()
	if got := c.Master(); got != next || !slices.Contains(c.Servers, got) {
		t.Errorf("master %s, want %s", got.Addr(), next.Addr())
	}
}
