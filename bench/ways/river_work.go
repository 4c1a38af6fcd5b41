package ways

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func (r *riverQueue) Work(ctx context.Context, ready func(), run func(n int)) error {
	config := r.config
	config.Workers = riverWorkers(run)
	client, err := river.NewClient(riverpgxv5.New(r.pool), &config)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		<-client.Stopped()
	}()
	if err := client.Start(working); err != nil {
		return unlessEnded(ctx, err)
	}
	if err := r.awaitProbe(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	ready()
	<-ctx.Done()
	return nil
}

func riverWorkers(run func(n int)) *river.Workers {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[riverJob]) error {
		n, err := way.N(job.Args.ID)
		if err != nil {
			return river.JobCancel(err)
		}
		run(n)
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[riverProbe]) error { return nil }))
	return workers
}

// riverProbe is a job that each worker schedules for itself: once it has run, here or
// in another process, there is a leader, and what is due is run.
type riverProbe struct{}

func (riverProbe) Kind() string { return "probe" }

const (
	riverProbeIn   = 100 * time.Millisecond // only what is due later is scheduled
	riverProbePoll = 10 * time.Millisecond
)

func (r *riverQueue) awaitProbe(ctx context.Context) error {
	probe, err := r.client.Insert(ctx, riverProbe{}, &river.InsertOpts{ScheduledAt: time.Now().Add(riverProbeIn)})
	if err != nil {
		return err
	}
	poll := time.NewTicker(riverProbePoll)
	defer poll.Stop()
	for {
		job, err := r.client.JobGet(ctx, probe.Job.ID)
		if err != nil {
			return fmt.Errorf("looking whether River has a leader: %w", err)
		}
		if job.State == rivertype.JobStateCompleted {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}
