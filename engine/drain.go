package engine

import (
	"context"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

const (
	// lastWords is how long handlers have to return once they were told to.
	lastWords = time.Second
	// settleGrace is how long the last outcomes may take to get to Redis. What
	// can't be settled runs again elsewhere, when this node's lease ends.
	settleGrace = 5 * time.Second
)

// drain ends the work: what waits is given back, handlers get their grace and
// are then told to stop, and what goes on all the same is given back too.
func (e *Engine) drain() {
	for _, run := range e.pool.close() {
		run.part.giveBack(run.Run)
	}
	busy := e.pool.left()
	if len(busy) > 0 {
		e.log.Info("draining: waiting for handlers", "running", len(busy), "grace", e.cfg.ShutdownGrace)
	}
	// If a handler never returns, this goroutine waits with it, and ends with
	// the process as it does.
	idle := make(chan struct{})
	go func() {
		e.pool.workers.Wait()
		close(idle)
	}()
	if within(idle, max(e.cfg.ShutdownGrace, 0)) {
		return
	}
	for _, p := range e.parts {
		p.node.stop()
	}
	if within(idle, lastWords) {
		return
	}
	for _, run := range e.pool.left() {
		out := outcome{run: run.Run, Firing: Firing{Job: jobOf(run.Run), Source: run.Source, Outcome: Returned, Err: ErrShutdown}}
		if e.pool.byName[run.Task].task.Options.Delivery == registry.AtMostOnce {
			out.Outcome = Died
		}
		e.log.Error("a handler does not stop; its run is given up", "task", run.Task, "id", run.ID, "run_id", run.RunID, "outcome", out.Outcome)
		run.part.out.add(out)
	}
}

// giveBack returns runs that were not started.
func (p *partition) giveBack(runs ...wire.Run) {
	for _, run := range runs {
		p.out.add(outcome{run: run, Firing: Firing{Job: jobOf(run), Source: run.Source, Outcome: Returned}})
	}
}

// within waits for done so long, and says whether it came.
func within(done <-chan struct{}, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
