package ways

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func incrCounting() way.Counting {
	return way.Counting{
		Name:  "incr",
		What:  "INCR, EXPIRE by whoever got 1, and whoever got a multiple of the threshold pushes the task to a list; what is killed between two of these loses a firing, or leaves a counter that never ends",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Counter, error) {
			return incr{dial(env)}, nil
		},
	}
}

const incrQueue = "fired-tasks"

// incr counts in Redis and compares in this process.
type incr struct{ rdb *redis.Client }

func (c incr) Single(ctx context.Context, hits, counters, callers int) error {
	return eachHit(ctx, hits, callers, func(ctx context.Context, hit int) error {
		key := counterOf(hit, counters)
		count, err := c.rdb.Incr(ctx, key).Result()
		if err != nil {
			return err
		}
		return react(ctx, c.rdb, key, count)
	})
}

// react does what a count calls for. A counter is not set back when it fires: hits that
// come meanwhile would be lost.
func react(ctx context.Context, rdb redis.Cmdable, key string, count int64) error {
	if count == 1 {
		if err := rdb.Expire(ctx, key, countWithin).Err(); err != nil {
			return err
		}
	}
	if count%way.Threshold == 0 {
		return rdb.RPush(ctx, incrQueue, key+" "+way.Payload).Err()
	}
	return nil
}

// Bulk pipelines the hits, and then what they call for.
func (c incr) Bulk(ctx context.Context, hits, counters int) error {
	return way.Jobs{Count: hits}.Chunks(bulkSize, func(chunk way.Jobs) error {
		counted, err := c.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range chunk.Count {
				p.Incr(ctx, counterOf(chunk.From+i, counters))
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, err = c.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, answer := range counted {
				if err := react(ctx, p, counterOf(chunk.From+i, counters), answer.(*redis.IntCmd).Val()); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
}

func (c incr) Fired(ctx context.Context) (int, error) {
	n, err := c.rdb.LLen(ctx, incrQueue).Result()
	return int(n), err
}

func (c incr) Close() error { return c.rdb.Close() }
