package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/registry"
)

// onCluster runs a test on a cluster of three masters with a replica each.
func onCluster(t *testing.T, test func(w *world, cluster *redistest.Cluster)) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1)
	test(newClusterWorld(t, cluster), cluster)
}

func newClusterWorld(t *testing.T, cluster *redistest.Cluster) *world {
	w := &world{T: t, span: 200 * time.Millisecond, lease: 2 * time.Second, real: true}
	w.open = func() redis.UniversalClient {
		return cluster.Client(t, func(o *redis.ClusterOptions) {
			o.ContextTimeoutEnabled, o.Username, o.Password = true, w.user.name, w.user.password
		})
	}
	w.connect(client.Config{})
	return w
}

// ids fired by a node, each once. Runs that it gave back do not count.
func (n *node) firedAll(want int) []string {
	n.w.Helper()
	seen := make(map[string]int)
	for done := 0; done < want; {
		if f := n.fired(); f.Outcome == engine.Done {
			seen[f.Job.ID]++
			done++
		}
	}
	for id, times := range seen {
		if times > 1 {
			n.w.Errorf("%s fired %d times", id, times)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func TestClusterFiresBareJobsOfAllMasters(t *testing.T) {
	onCluster(t, func(w *world, _ *redistest.Cluster) {
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		const jobs = 300
		for i := range jobs {
			w.setBare(fmt.Sprint("job", i), "mail", 100*time.Millisecond)
		}
		if got := n.firedAll(jobs); len(got) != jobs {
			w.Errorf("%d of %d jobs fired", len(got), jobs)
		}
	})
}

func TestClusterFailoverLosesNothing(t *testing.T) {
	onCluster(t, func(w *world, cluster *redistest.Cluster) {
		var err error
		if w.jobs, err = client.New(w.rdb, client.Config{WaitReplicas: 1}); err != nil {
			w.Fatal(err)
		}
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		const jobs = 200
		for i := range jobs {
			w.schedule(client.Spec{ID: fmt.Sprint("job", i), Task: "mail", In: 3 * time.Second})
			w.setBare(fmt.Sprint("bare", i), "mail", 3*time.Second)
		}
		slot := w.slot("job0")
		master := cluster.Master(slot)
		master.Kill()
		cluster.AwaitFailover(slot, master)
		if got := n.firedAll(2 * jobs); len(got) != 2*jobs {
			w.Errorf("%d of %d jobs fired", len(got), 2*jobs)
		}
		// The subscription has followed: a bare job that no sweep knows is heard of.
		w.setBare("later", "mail", w.span)
		if f := n.fired(); f.Job.ID != "later" {
			w.Errorf("%s fired", f.Job.ID)
		}
	})
}

func TestClusterReplacesAFrozenMasterThatComesBackAndNothingConfirmedIsLost(t *testing.T) {
	onCluster(t, func(w *world, cluster *redistest.Cluster) {
		w.survives(func() {
			slot := w.slot("own0")
			master := cluster.Master(slot)
			master.Pause()
			cluster.AwaitFailover(slot, master)
			master.Resume() // as a master, until it hears of the others
			cluster.AwaitOK()
		})
	})
}

func TestClusterReplicaThatIsAwayConfirmsWhenItIsBack(t *testing.T) {
	onCluster(t, func(w *world, cluster *redistest.Cluster) {
		for id, leave := range map[string]func(*redistest.Server){"frozen": (*redistest.Server).Pause, "stopped": (*redistest.Server).Stop} {
			replica := cluster.Replicas(cluster.Master(w.slot(id)))[0]
			back := replica.Resume
			if id == "stopped" {
				back = replica.Restart
			}
			w.confirmsLater(id, func() { leave(replica) }, back)
			cluster.AwaitOK()
		}
	})
}

// slot is the slot of an id's partition.
func (w *world) slot(id string) int {
	w.Helper()
	return int(w.rdb.ClusterKeySlot(w.Context(), w.names(id).Root()).Val())
}

// TestClusterReshardingLosesNothing moves slots that are full of keys, so that it
// takes a while, while jobs are scheduled and fire.
func TestClusterReshardingLosesNothing(t *testing.T) {
	onCluster(t, func(w *world, cluster *redistest.Cluster) {
		// A slot that takes long to move may cost a short lease, and so a second run.
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm})
		const later, schedulers = 40_000, 4
		for _, r := range w.jobs.ScheduleMany(w.Context(), numbered(later)) {
			if r.Err != nil {
				w.Fatal(r.Err)
			}
		}
		var scheduling sync.WaitGroup
		ctx, stop := context.WithCancel(w.Context())
		var jobs atomic.Int64
		for worker := range schedulers {
			scheduling.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprint("job", worker, "-", i)
					_, err := w.jobs.Schedule(w.Context(), client.Spec{ID: id, Task: "mail", In: w.span})
					for errors.Is(err, client.ErrMoving) { // the machine is slow: nothing was changed
						_, err = w.jobs.Schedule(w.Context(), client.Spec{ID: id, Task: "mail", In: w.span})
					}
					if err != nil {
						w.Errorf("schedule %s: %v", id, err)
						return
					}
					jobs.Add(1)
				}
			})
		}
		masters := cluster.Masters()
		for _, id := range []string{"a", "b", "c", "a", "b", "c"} {
			slot := w.slot(id)
			from := cluster.Master(slot)
			cluster.MoveSlots(from, masters[(slices.Index(masters, from)+1)%len(masters)], slot)
		}
		stop()
		scheduling.Wait()
		want := int(jobs.Load())
		if got := n.firedAll(want); len(got) != want {
			w.Errorf("%d of %d jobs fired", len(got), want)
		}
		stats, err := w.jobs.Stats(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if i := slices.IndexFunc(stats.Tasks, func(s client.TaskStats) bool { return s.Task == "later" }); stats.Tasks[i].Pending != later {
			w.Errorf("of %d jobs that are due later %d are left", later, stats.Tasks[i].Pending)
		}
		w.setBare("bare", "mail", w.span)
		if f := n.fired(); f.Job.ID != "bare" {
			w.Errorf("%s fired", f.Job.ID)
		}
		w.Logf("%d jobs", want)
	})
}

func numbered(n int) iter.Seq[client.Spec] {
	return func(yield func(client.Spec) bool) {
		for i := range n {
			if !yield(client.Spec{ID: fmt.Sprint("later", i), Task: "later", In: time.Hour}) {
				return
			}
		}
	}
}
