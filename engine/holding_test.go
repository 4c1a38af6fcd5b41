package engine_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// lost is what Redis holds of a run that is under way, and of one that was just
// settled if a failover, or a restart, loses the last writes.
type lost struct {
	running, records map[string]string
	ids              []redis.Z
}

func (w *world) underWay(task string) lost {
	ctx := w.Context()
	return lost{
		w.rdb.HGetAll(ctx, "keyfuse:running:"+task).Val(), w.rdb.HGetAll(ctx, "keyfuse:runs:"+task).Val(),
		w.rdb.ZRangeWithScores(ctx, "keyfuse:ids", 0, -1).Val(),
	}
}

func (w *world) putBack(task string, l lost) {
	w.Helper()
	ctx := w.Context()
	_, err := w.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, "keyfuse:running:"+task, l.running)
		p.HSet(ctx, "keyfuse:runs:"+task, l.records)
		p.ZAdd(ctx, "keyfuse:ids", l.ids...)
		return nil
	})
	if err != nil {
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
