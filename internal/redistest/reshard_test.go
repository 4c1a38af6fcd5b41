//go:build unix

package redistest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// counter increments its keys in turn until its context ends, and keeps count.
type counter struct {
	rdb  *redis.ClusterClient
	keys []string
	seen map[string]int64 // acknowledged, by key
	err  error
}

func (c *counter) run(ctx context.Context, first *sync.WaitGroup) {
	for round := 0; ctx.Err() == nil && c.err == nil; round++ {
		for _, key := range c.keys {
			// Not ctx: an increment that is cut off may count or not.
			if c.err = c.rdb.Incr(context.WithoutCancel(ctx), key).Err(); c.err != nil {
				break
			}
			c.seen[key]++
		}
		if round == 0 {
			first.Done()
		}
	}
}

// startCounting returns when every key was counted once; stop ends it.
func startCounting(t *testing.T, rdb *redis.ClusterClient, keys []string) (load []*counter, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working, first sync.WaitGroup
	for part := range slices.Chunk(keys, 100) {
		one := &counter{rdb: rdb, keys: part, seen: make(map[string]int64)}
		load = append(load, one)
		first.Add(1)
		working.Go(func() { one.run(ctx, &first) })
	}
	first.Wait()
	stop = func() {
		cancel()
		working.Wait()
	}
	t.Cleanup(stop)
	return load, stop
}

func TestMovedSlotsServeTheirKeysUnderLoad(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	from, to := c.Servers[0], c.Servers[1]
	rdb := c.Client(t)
	// One tag, one slot, and more keys than one MIGRATE takes, besides those of
	// other slots.
	keys, tag := someKeys(), keyOf(t, c, from)
	for i := range 3 * moveChunk {
		keys = append(keys, fmt.Sprintf("{%s}%d", tag, i))
	}
	load, stop := startCounting(t, rdb, keys)
	moved := c.Slots(from)[:500]
	moved = append(moved, slotOf(t, c, tag))
	slices.Sort(moved)
	moved = slices.Compact(moved)
	c.MoveSlots(from, to, moved...)
	stop()
	for _, one := range load {
		if one.err != nil {
			t.Error(one.err)
		}
		for key, want := range one.seen {
			if got, err := rdb.Get(t.Context(), key).Int64(); got != want || err != nil {
				t.Errorf("%s counted to %d, want %d; error %v", key, got, want, err)
			}
		}
	}
	c.AwaitOK()
	for _, slot := range moved {
		if n, err := from.Client(t).ClusterCountKeysInSlot(t.Context(), slot).Result(); n != 0 || err != nil {
			t.Errorf("%d keys of slot %d stayed, error %v", n, slot, err)
		}
	}
	if got := c.Slots(to); !containsAll(got, moved) {
		t.Errorf("the new owner has %d slots, and not all of the %d moved", len(got), len(moved))
	}
}

// keyOf is a key of the server.
func keyOf(t *testing.T, c *Cluster, s *Server) string {
	t.Helper()
	owned := c.Slots(s)
	for _, key := range someKeys() {
		if slices.Contains(owned, slotOf(t, c, key)) {
			return key
		}
	}
	t.Fatalf("none of the keys is on %s", s.Addr())
	return ""
}

func containsAll(all, some []int) bool {
	for _, x := range some {
		if _, ok := slices.BinarySearch(all, x); !ok {
			return false
		}
	}
	return true
}

func TestMasterThatGaveAllItsSlotsAwayStaysAMaster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 0)
	slots := c.Slots(c.Servers[2])
	c.MoveSlots(c.Servers[2], c.Servers[0], slots...)
	c.AwaitOK()
	if got := c.Slots(c.Servers[2]); len(got) != 0 {
		t.Errorf("it has %d slots", len(got))
	}
	if got := c.Masters(); !slices.Equal(got, c.Servers) {
		t.Errorf("masters %v", addrs(got))
	}
	c.MoveSlots(c.Servers[0], c.Servers[2], slots[:10]...)
	if got := c.Slots(c.Servers[2]); !slices.Equal(got, slots[:10]) {
		t.Errorf("came back: %v", got)
	}
}
