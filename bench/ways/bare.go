package ways

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func bareWay() way.Way {
	return way.Way{
		Name:  "bare events",
		What:  "Redis keyspace notifications: SET id '' PXAT due (EX counts whole seconds from when it arrives, PXAT makes the due time exact) and SET class:id; PSUBSCRIBE expired, then GETDEL class:id by 64 workers; an event that nobody heard is lost, and its job with it",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return bare{dial(env)}, nil
		},
	}
}

// bare is a key that expires for each job, and another that says what to run then.
type bare struct{ rdb *redis.Client }

const (
	bareClass   = "class:"
	bareChannel = "__keyevent@0__:expired"
	// bareBuffer is how many events wait for the workers in this process. The
	// default of 100 would leave them to Redis, which cuts off who is too slow.
	bareBuffer = 1 << 20
)

func (b bare) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		return b.arm(ctx, way.Jobs{From: job.N, Count: 1, First: job.Due})
	})
}

// Bulk pipelines.
func (b bare) Bulk(ctx context.Context, jobs way.Jobs) error {
	return jobs.Chunks(bulkSize, func(chunk way.Jobs) error { return b.arm(ctx, chunk) })
}

// arm sets both keys of some jobs in one round trip. The class comes first: it has to
// be there when the other expires.
func (b bare) arm(ctx context.Context, jobs way.Jobs) error {
	_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range jobs.Count {
			job := jobs.Job(i)
			id := way.ID(job.N)
			p.Set(ctx, bareClass+id, way.Task+" "+way.Payload, 0)
			p.SetArgs(ctx, id, "", redis.SetArgs{ExpireAt: job.Due})
		}
		return nil
	})
	return err
}

func (b bare) Work(ctx context.Context, ready func(), run func(n int)) error {
	if err := b.rdb.ConfigSet(ctx, "notify-keyspace-events", "Ex").Err(); err != nil {
		return unlessEnded(ctx, err)
	}
	sub := b.rdb.PSubscribe(ctx, bareChannel)
	defer sub.Close() //nolint:errcheck // nothing is left to be heard
	if _, err := sub.Receive(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	events := sub.Channel(redis.WithChannelSize(bareBuffer))
	ready()
	workers, working := errgroup.WithContext(ctx)
	for range way.Workers {
		workers.Go(func() error { return b.loop(working, events, run) })
	}
	return unlessEnded(ctx, workers.Wait())
}

func (b bare) loop(ctx context.Context, events <-chan *redis.Message, run func(n int)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-events:
			if err := b.expired(ctx, event.Payload, run); err != nil {
				return err
			}
		}
	}
}

// expired runs the job of a key that has expired, unless another worker has taken it.
func (b bare) expired(ctx context.Context, id string, run func(n int)) error {
	class, err := b.rdb.GetDel(ctx, bareClass+id).Result()
	if errors.Is(err, redis.Nil) || err == nil && !strings.HasPrefix(class, way.Task+" ") {
		return nil
	}
	if err != nil {
		return err
	}
	n, err := way.N(id)
	if err != nil {
		return err
	}
	run(n)
	return nil
}

func (b bare) Close() error { return b.rdb.Close() }
