package ways

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

const bareWhat = "Redis keyspace notifications: SET id '' PXAT due (EX counts whole seconds from when it arrives, PXAT makes the due time exact) and SET class:id; PSUBSCRIBE expired, then "

func bareWay() way.Way {
	return way.Way{
		Name:  "bare events",
		What:  bareWhat + "GETDEL class:id by 64 workers; an event that nobody heard is lost, and its job with it",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return bare{rdb: dial(env), effort: 1, most: 1}, nil
		},
	}
}

func bareFastWay() way.Way {
	return way.Way{
		Name:  "bare events-fast",
		What:  fmt.Sprintf("%spipelined GETDEL class:id by 64 workers, each for the up to %d events that wait already; active-expire-effort 10; what nobody heard is lost, as is what a worker has taken when it is killed", bareWhat, barePage),
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return bare{rdb: dial(env), effort: 10, most: barePage}, nil
		},
	}
}

// bare is a key that expires for each job, and another that says what to run then.
type bare struct {
	rdb    *redis.Client
	effort int // with which Redis looks for what has expired, from 1, its default, to 10
	most   int // events that a worker takes at a time
}

const (
	bareClass   = "class:"
	bareChannel = "__keyevent@0__:expired"
	// bareBuffer is how many events wait for the workers in this process. The
	// default of 100 would leave them to Redis, which cuts off who is too slow.
	bareBuffer = 1 << 20
	barePage   = 100
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
	if err := b.configure(ctx); err != nil {
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

func (b bare) configure(ctx context.Context) error {
	if err := b.rdb.ConfigSet(ctx, "notify-keyspace-events", "Ex").Err(); err != nil {
		return err
	}
	return b.rdb.ConfigSet(ctx, "active-expire-effort", strconv.Itoa(b.effort)).Err()
}

func (b bare) loop(ctx context.Context, events <-chan *redis.Message, run func(n int)) error {
	ids := make([]string, 0, b.most)
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-events:
			ids = b.waiting(append(ids[:0], event.Payload), events)
			if err := b.expired(ctx, ids, run); err != nil {
				return err
			}
		}
	}
}

// waiting adds what can be heard without waiting for it.
func (b bare) waiting(ids []string, events <-chan *redis.Message) []string {
	for len(ids) < b.most {
		select {
		case event := <-events:
			ids = append(ids, event.Payload)
		default:
			return ids
		}
	}
	return ids
}

// expired runs the jobs of keys that have expired, but for those that another worker
// has taken.
func (b bare) expired(ctx context.Context, ids []string, run func(n int)) error {
	classes, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			p.GetDel(ctx, bareClass+id)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for i, class := range classes {
		text, err := class.(*redis.StringCmd).Result()
		if errors.Is(err, redis.Nil) || err == nil && !strings.HasPrefix(text, way.Task+" ") {
			continue
		}
		if err != nil {
			return err
		}
		n, err := way.N(ids[i])
		if err != nil {
			return err
		}
		run(n)
	}
	return nil
}

func (b bare) Close() error { return b.rdb.Close() }
