package ways

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// Asynq keeps due times in whole seconds and cuts off the rest, so that a job would be
// early otherwise.
const asynqGrain = time.Second

func asynqWay() way.Way {
	return way.Way{
		Name:  "asynq",
		What:  "hibiken/asynq at its defaults: as many workers as CPUs, due tasks looked for every 5 s",
		Needs: []string{redisServer},
		Grain: asynqGrain,
		Open:  openAsynq(asynq.Config{}, 0),
	}
}

// asynqFastWay has the intervals short. The documentation names no least ones; these
// are a hundredth of the grain, and cost an idle worker some 300 calls a second.
func asynqFastWay() way.Way {
	return way.Way{
		Name:  "asynq-fast",
		What:  "hibiken/asynq, 64 workers, due tasks looked for every 10 ms (DelayedTaskCheckInterval), empty queues every 10 ms (TaskCheckInterval)",
		Needs: []string{redisServer},
		Grain: asynqGrain,
		Open: openAsynq(asynq.Config{
			Concurrency:              way.Workers,
			DelayedTaskCheckInterval: 10 * time.Millisecond,
			TaskCheckInterval:        10 * time.Millisecond,
		}, way.Workers+8),
	}
}

// openAsynq opens it with connections for so many; 0 means the default.
func openAsynq(config asynq.Config, connections int) func(context.Context, way.Env) (way.Instance, error) {
	config.LogLevel = asynq.FatalLevel
	return func(_ context.Context, env way.Env) (way.Instance, error) {
		redis := asynq.RedisClientOpt{Addr: env.Addrs[redisServer], PoolSize: connections}
		return asynqQueue{redis: redis, config: config, client: asynq.NewClient(redis)}, nil
	}
}

type asynqQueue struct {
	redis  asynq.RedisClientOpt
	config asynq.Config
	client *asynq.Client
}

func (q asynqQueue) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		task := asynq.NewTask(way.Task, []byte(way.Payload))
		_, err := q.client.EnqueueContext(ctx, task, asynq.TaskID(way.ID(job.N)), asynq.ProcessAt(job.Due))
		return err
	})
}

func (q asynqQueue) Bulk(context.Context, way.Jobs) error { return way.ErrNoBulk }

func (q asynqQueue) Work(ctx context.Context, ready func(), run func(n int)) error {
	server := asynq.NewServer(q.redis, q.config)
	err := server.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		n, err := way.N(id)
		if err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		run(n)
		return nil
	}))
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	server.Shutdown()
	return nil
}

func (q asynqQueue) Close() error { return q.client.Close() }
