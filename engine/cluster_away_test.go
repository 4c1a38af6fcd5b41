package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/registry"
)

// away are the ways in which a master that nobody replaces can be away.
var away = map[string]func(*redistest.Server){
	"killed": (*redistest.Server).Kill,
	"frozen": (*redistest.Server).Pause,
}

// withoutReplicas is a cluster whose masters are not replaced, and where the others go
// on when one is away.
func withoutReplicas(t *testing.T) (*world, *redistest.Cluster) {
	cluster := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	return newClusterWorld(t, cluster), cluster
}

// others are some ids that a master does not have.
func (w *world) others(cluster *redistest.Cluster, master *redistest.Server, n int) []string {
	var ids []string
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprint("job", i); cluster.Master(w.slot(id)) != master {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestClusterWorksOnWhileAMasterIsAway: claims that hang keep no room in the pool from
// the partitions of other masters, also where there is little.
func TestClusterWorksOnWhileAMasterIsAway(t *testing.T) {
	t.Parallel()
	for how, leave := range away {
		t.Run(how, func(t *testing.T) {
			w, cluster := withoutReplicas(t)
			n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm, Concurrency: 1})
			master := cluster.Masters()[0]
			ids := w.others(cluster, master, 60)
			leave(master)
			for _, id := range ids {
				w.schedule(client.Spec{ID: id, Task: "mail", In: w.span})
				if f := n.fired(); f.Job.ID != id || f.Late > 5*time.Second {
					t.Errorf("%s fired, %s late; want %s", f.Job.ID, f.Late, id)
				}
			}
			master.Resume()
		})
	}
}

// TestClusterStartsWhileAMasterIsAway: the partitions of the others are served, and the
// node says that it is ready.
func TestClusterStartsWhileAMasterIsAway(t *testing.T) {
	t.Parallel()
	for how, leave := range away {
		t.Run(how, func(t *testing.T) {
			w, cluster := withoutReplicas(t)
			master := cluster.Masters()[0]
			id := w.others(cluster, master, 1)[0]
			w.schedule(client.Spec{ID: id, Task: "mail"})
			leave(master)
			log := &record{}
			said := log.lineWith("msg=ready")
			n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm, Logger: log.logger()})
			if f := n.fired(); f.Job.ID != id {
				t.Errorf("%s fired", f.Job.ID)
			}
			await(w, said, "the node to be ready")
			master.Resume()
		})
	}
}

func TestClusterTakesIDsWithBraces(t *testing.T) {
	onCluster(t, func(w *world, _ *redistest.Cluster) {
		ids := []string{
			"{", "}", "{}", "{}x", "{a}", "a{b}c", "{kf1o}order", "{kf7d}", "}{", "{{a}}", "\x00{a\x00}", "{a\n}",
			"[a]{*}?", `\{x}`, "{kf1o}{kf2tu}z", "keyfuse", "{kf1o}class:x", "{kf1o}keyfuse:x", "é{ü}", "\xff{\xff}",
		}
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm})
		for _, id := range ids {
			w.schedule(client.Spec{ID: id, Task: "mail", In: time.Hour})
		}
		for limit := range 4 {
			seen := make(map[string]int)
			for cursor, more := "", true; more; more = cursor != "" {
				page, err := w.jobs.List(w.Context(), client.Filter{}, cursor, 2*limit+1)
				if err != nil {
					w.Fatal(err)
				}
				for _, job := range page.Jobs {
					seen[job.ID]++
				}
				cursor = page.Next
			}
			for _, id := range ids {
				if seen[id] != 1 {
					w.Errorf("in pages of %d, %q is listed %d times", 2*limit+1, id, seen[id])
				}
			}
		}
		for _, id := range ids {
			if err := w.jobs.Cancel(w.Context(), id); err != nil {
				w.Errorf("cancel %q: %v", id, err)
			}
			w.setBare(id, "mail", w.span)
		}
		if got := n.firedAll(len(ids)); len(got) != len(ids) {
			w.Errorf("fired %q", got)
		}
	})
}
