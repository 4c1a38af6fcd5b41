package engine_test

import (
	"context"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// underWay is what Redis holds of runs that are under way, and of ones that were just
// settled if a failover, or a restart, loses the last writes.
func (w *world) underWay(task string) map[string]string {
	return w.rdb.HGetAll(w.Context(), "keyfuse:running:"+task).Val()
}

func (w *world) putBack(task string, running map[string]string) {
	w.Helper()
	if err := w.rdb.HSet(w.Context(), "keyfuse:running:"+task, running).Err(); err != nil {
		w.Fatal(err)
	}
}

// outcomeLost: the lease is the node's all the same, and the node lives, so that
// nobody else would ever free it.
func outcomeLost(w *world) {
	started, release := make(chan registry.Job, 10), make(chan struct{}, 10)
	reg := tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		started <- job
		<-release
		return nil
	}})
	n := w.start(reg, engine.Config{})
	loseOne := func(id string) {
		w.schedule(client.Spec{ID: id, Task: "mail"})
		await(w, started, "the run")
		under := w.underWay("mail")
		release <- struct{}{}
		n.fired()
		w.schedule(client.Spec{Task: "marker"}) // a later claim
		n.fired()
		w.putBack("mail", under)
	}
	loseOne("a")
	if err := w.rdb.ConfigSet(w.Context(), flags, "").Err(); err != nil { // a gap, as a failover makes
		w.Fatal(err)
	}
	await(w, started, "the second run")
	release <- struct{}{}
	if f := n.fired(); f.Job.ID != "a" || f.Job.Attempt != 2 || f.Outcome != engine.Done {
		w.Errorf("after the gap: %+v", f)
	}
	loseOne("b")
	n.stop()
	next := w.start(reg, engine.Config{})
	release <- struct{}{}
	if f := next.fired(); f.Job.ID != "b" || f.Job.Attempt != 2 || f.Outcome != engine.Done {
		w.Errorf("after the node has left: %+v", f)
	}
}
