package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

// Firing is one attempt of a run and what came of it.
type Firing struct {
	Job     registry.Job
	Source  string // how the job was found: index, event, sweep, manual
	Outcome Outcome
	Err     error         // what the handler returned; nil when it succeeded
	Late    time.Duration // from the due time to the handler's start, by Redis's clock
	Took    time.Duration // the handler's time; zero if it was not called
}

// Outcome is what became of a run.
type Outcome string

// The outcomes.
const (
	Done      Outcome = "done"
	Retried   Outcome = "retried"
	Died      Outcome = "dead"
	Discarded Outcome = "discarded"
	Returned  Outcome = "returned" // given back unfinished: its node shuts down
	Lost      Outcome = "lost"     // its lease was lost: the outcome changed nothing
)

// outcome is a firing on its way to being settled.
type outcome struct {
	Firing
	run   wire.Run
	delay time.Duration // of a retry
}

var errGoexit = errors.New("the handler ended its goroutine")

// run executes one attempt and hands its outcome to the settler. A handler that
// does not return to it (runtime.Goexit) has its outcome settled all the same.
func (p *partition) run(task registry.Task, run wire.Run) {
	name, lease := p.node.current()
	job := jobOf(run)
	out := outcome{Firing: Firing{Job: job, Source: run.Source, Err: errGoexit, Late: p.redisNow().Sub(run.Due)}, run: run}
	if run.Node() != name || p.node.left(1) <= 0 { // the lease was lost while it waited for a place, or this process stood still
		out.Outcome, out.Err = Returned, ErrLeaseLost
		p.out.add(out)
		return
	}
	if err := spent(task, run); err != nil {
		out.Outcome, out.Err = Died, err
		p.out.add(out)
		return
	}
	ctx, cancel := handlerContext(lease, task.Options.Timeout)
	defer cancel()
	start := time.Now()
	defer func() {
		out.Took = time.Since(start)
		out.judge(task, context.Cause(ctx))
		p.out.add(out)
	}()
	out.Err = p.call(ctx, task, job)
}

func jobOf(run wire.Run) registry.Job {
	trace, payload := wire.CutTrace(run.Payload)
	return registry.Job{
		ID: run.ID, Task: run.Task, Payload: payload, RunID: run.RunID, Attempt: run.Attempt,
		Due: run.Due, Reason: registry.Reason(run.Reason), Count: run.Count, Trace: trace,
	}
}

// spent says why a run must not be started again, or nil: attempts are counted
// when a run is claimed, so that a job that kills its node can't do so for ever.
func spent(task registry.Task, run wire.Run) error {
	last := cmp.Or(run.LastError, "its node stopped while it ran")
	switch {
	case task.Options.Delivery == registry.AtMostOnce && run.Attempt > 1:
		return fmt.Errorf("may have run already, and its task runs at most once; last error: %s", last)
	case run.Attempt > task.Options.Retries.Max+1:
		return fmt.Errorf("gave up after %d attempts; last error: %s", run.Attempt-1, last)
	}
	return nil
}

// handlerContext ends at the task's timeout, or with the lease.
func handlerContext(lease context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(lease)
	}
	return context.WithTimeoutCause(lease, timeout, ErrTimeout)
}

func (p *partition) call(ctx context.Context, task registry.Task, job registry.Job) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			p.log.Error("a handler panicked", "task", job.Task, "id", job.ID, "run_id", job.RunID, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	return task.Handler.Handle(ctx, job)
}

// judge decides what becomes of a run. ended is why its context ended, if it did.
func (o *outcome) judge(task registry.Task, ended error) {
	verdict, delay := registry.Judge(o.Err)
	final := task.Options.Delivery == registry.AtMostOnce || o.run.Attempt > task.Options.Retries.Max
	switch {
	case verdict == registry.VerdictDone:
		o.Outcome = Done
	case verdict == registry.VerdictDiscard:
		o.Outcome = Discarded
	case errors.Is(ended, ErrShutdown) && task.Options.Delivery == registry.AtLeastOnce && verdict == registry.VerdictRetry:
		o.Outcome = Returned
	case verdict == registry.VerdictDead || final:
		o.Outcome = Died
	case verdict == registry.VerdictAfter:
		o.Outcome, o.delay = Retried, delay
	default:
		o.Outcome, o.delay = Retried, backoff(task.Options.Retries, o.run.Attempt)
	}
	if errors.Is(ended, ErrTimeout) && o.Err != nil {
		o.Err = fmt.Errorf("%w (%s): %w", ErrTimeout, task.Options.Timeout, o.Err)
	}
}

// tell says what became of a firing, once that is in Redis.
func (e *Engine) tell(o *outcome) {
	level := slog.LevelDebug
	switch o.Outcome {
	case Died, Discarded, Lost:
		level = slog.LevelWarn
	case Retried:
		level = slog.LevelInfo
	case Done, Returned:
	}
	if e.log.Enabled(context.Background(), level) {
		attrs := []any{
			"task", o.Job.Task, "id", o.Job.ID, "run_id", o.Job.RunID, "attempt", o.Job.Attempt, "outcome", o.Outcome,
			"reason", o.Job.Reason, "source", o.Source, "late", o.Late.Round(time.Microsecond), "took", o.Took.Round(time.Microsecond),
		}
		if o.Outcome == Retried {
			attrs = append(attrs, "again_in", o.delay.Round(time.Millisecond))
		}
		if o.Err != nil {
			attrs = append(attrs, "err", o.Err)
		}
		e.log.Log(context.Background(), level, "fired", attrs...)
	}
	if e.cfg.Observer.Settled != nil {
		e.cfg.Observer.Settled(o.Firing)
	}
}
