package ways

import (
	"context"
	"io"
	"log"
	"time"

	"github.com/hdt3213/delayqueue"
	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func delayQueueWay() way.Way {
	return way.Way{
		Name:  "delayqueue",
		What:  "hdt3213/delayqueue, 64 consumers, a fetch of 1000 every 10 ms; it names messages itself, so the payload holds the job's id too",
		Needs: []string{redisServer},
		Grain: time.Second, // it keeps whole seconds, and cuts off the rest
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			rdb := dial(env)
			return delayQueue{rdb: rdb, publisher: delayqueue.NewPublisher(way.Task, rdb)}, nil
		},
	}
}

const (
	delayQueueInterval = 10 * time.Millisecond
	// delayQueueFetch bounds what it fetches before it runs any. It fetches one after
	// the other, and what has not run 5 s later is given out again: without a bound,
	// a burst would run twice.
	delayQueueFetch = 1000
)

type delayQueue struct {
	rdb       *redis.Client
	publisher *delayqueue.Publisher
}

func (q delayQueue) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(_ context.Context, job way.Job) error {
		return q.publisher.SendScheduleMsg(named(job.N), job.Due)
	})
}

func (q delayQueue) Bulk(context.Context, way.Jobs) error { return way.ErrNoBulk }

func (q delayQueue) Work(ctx context.Context, ready func(), run func(n int)) error {
	queue := delayqueue.NewQueue(way.Task, q.rdb).
		WithCallback(func(payload string) bool {
			n, err := nOfNamed(payload)
			if err == nil {
				run(n)
			}
			return err == nil
		}).
		WithConcurrent(way.Workers).
		WithFetchInterval(delayQueueInterval).
		WithFetchLimit(delayQueueFetch).
		WithLogger(log.New(io.Discard, "", 0))
	ended := queue.StartConsume()
	ready()
	<-ctx.Done()
	queue.StopConsume()
	<-ended
	return nil
}

func (q delayQueue) Close() error { return q.rdb.Close() }
