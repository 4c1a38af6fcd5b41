package ways

import (
	"context"
	"iter"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/bench/way"
	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

func keyfuseWay() way.Way {
	return way.Way{
		Name:  "keyfuse",
		What:  "Keyfuse, the library at its defaults: 64 handlers in Go",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return openKeyfuse(env)
		},
	}
}

// keyfuse schedules through the client, and works with an engine in this process.
type keyfuse struct {
	rdb  *redis.Client
	jobs *client.Client
}

func openKeyfuse(env way.Env) (keyfuse, error) {
	rdb := dial(env)
	jobs, err := client.New(rdb, client.Config{})
	return keyfuse{rdb: rdb, jobs: jobs}, err
}

func specOf(job way.Job) client.Spec {
	return client.Spec{ID: way.ID(job.N), Task: way.Task, Payload: []byte(way.Payload), At: job.Due}
}

func specsOf(jobs way.Jobs) iter.Seq[client.Spec] {
	return func(yield func(client.Spec) bool) {
		for i := range jobs.Count {
			if !yield(specOf(jobs.Job(i))) {
				return
			}
		}
	}
}

func (k keyfuse) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		_, err := k.jobs.Schedule(ctx, specOf(job))
		return err
	})
}

func (k keyfuse) Bulk(ctx context.Context, jobs way.Jobs) error {
	for _, result := range k.jobs.ScheduleMany(ctx, specsOf(jobs)) {
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}

func (k keyfuse) Work(ctx context.Context, ready func(), run func(n int)) error {
	tasks := registry.New()
	tasks.Register(way.Task, registry.Func(func(_ context.Context, job registry.Job) error {
		n, err := way.N(job.ID)
		if err != nil {
			return registry.Dead(err)
		}
		run(n)
		return nil
	}), registry.Options{})
	node, err := engine.New(k.rdb, tasks, engine.Config{
		Concurrency: way.Workers,
		Logger:      slog.New(slog.DiscardHandler),
		Observer:    engine.Observer{Ready: ready},
	})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}

func (k keyfuse) Close() error { return k.rdb.Close() }
