package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// counted is what clients know of a counter.
type counted struct {
	sure    atomic.Int64 // hits
	perhaps atomic.Int64 // hits that were not told of, for an error came before
}

var countedIDs = []string{"c", "user:0", "user:1", "user:2", "user:3"}

// TestClusterCountsExactlyWhileSlotsMove: what fired and what is still open is what
// was counted, whatever moved meanwhile.
func TestClusterCountsExactlyWhileSlotsMove(t *testing.T) {
	onCluster(t, func(w *world, cluster *redistest.Cluster) {
		n := mailNode(w, engine.Config{Lease: calm})
		w.define(client.Threshold{ID: "c", Task: "mail", Count: 100, Within: far})
		w.define(client.Threshold{ID: "user:*", Task: "mail", Count: 10, Within: far})
		for _, r := range w.jobs.ScheduleMany(w.Context(), numbered(20_000)) { // so that slots take a while
			if r.Err != nil {
				w.Fatal(r.Err)
			}
		}
		all := make(map[string]*counted)
		for _, id := range countedIDs {
			all[id] = &counted{}
		}
		ctx, stop := context.WithCancel(w.Context())
		var hitting sync.WaitGroup
		hitting.Go(func() { w.hitMany(ctx, all) })
		for worker := range 3 {
			hitting.Go(func() { w.hitEach(ctx, all, worker) })
		}
		masters := cluster.Masters()
		for _, id := range []string{"c", "user:0", "user:1", "c", "user:2", "c"} {
			slot := w.slot(id)
			from := cluster.Master(slot)
			cluster.MoveSlots(from, masters[(slices.Index(masters, from)+1)%len(masters)], slot)
		}
		stop()
		hitting.Wait()
		n.addUp(all)
	})
}

// hitMany counts many hits at once.
func (w *world) hitMany(ctx context.Context, all map[string]*counted) {
	const each = 100
	for ctx.Err() == nil {
		told := make(map[string]int64)
		for _, r := range w.jobs.HitMany(w.Context(), hitsOf(countedIDs, each)) {
			if r.Err == nil {
				told[r.ID]++
			}
		}
		for id, c := range all {
			c.sure.Add(told[id])
			c.perhaps.Add(each - told[id])
		}
	}
}

// hitsOf are n hits of each id, in turn.
func hitsOf(ids []string, n int) iter.Seq[client.Hit] {
	return func(yield func(client.Hit) bool) {
		for i := range n * len(ids) {
			if !yield(client.Hit{ID: ids[i%len(ids)]}) {
				return
			}
		}
	}
}

// hitEach counts hits one by one, each until that is certain.
func (w *world) hitEach(ctx context.Context, all map[string]*counted, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		hit := client.Hit{ID: countedIDs[i%len(countedIDs)], RequestID: fmt.Sprint(worker, "-", i)}
		_, err := w.jobs.Hit(w.Context(), hit)
		for errors.Is(err, client.ErrMoving) {
			_, err = w.jobs.Hit(w.Context(), hit)
		}
		if err != nil {
			w.Errorf("hit %s: %v", hit.ID, err)
		}
		all[hit.ID].sure.Add(1)
	}
}

// addUp compares counts with what has fired and is still open.
func (n *node) addUp(all map[string]*counted) {
	n.w.Helper()
	fired := make(map[string]int64)
	for id, c := range all {
		var sum int64
		n.w.until("all firings of "+id, func() bool {
			for len(n.firings) > 0 {
				f := <-n.firings
				fired[f.Job.ID] += f.Job.Count
			}
			sum = fired[id]
			if window := n.w.windowOf(id); window != nil {
				sum += window.Count
			}
			return sum >= c.sure.Load()
		})
		n.w.Logf("%s: %d hits, and %d that are uncertain", id, c.sure.Load(), c.perhaps.Load())
		if sum > c.sure.Load()+c.perhaps.Load() {
			n.w.Errorf("%s: %d were counted, want %d and at most %d more", id, sum, c.sure.Load(), c.perhaps.Load())
		}
	}
}
