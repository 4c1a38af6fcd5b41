package ways

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func zsetPollWay() way.Way {
	return way.Way{
		Name:  "zset-poll",
		What:  "Redis sorted set, the whole job as its member; every 100 ms ZRANGE BYSCORE LIMIT 0 1000 (once ZRANGEBYSCORE), then pipelined ZREM: whoever removes a job runs it, and loses it if killed",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return zsetPoll{zset{dial(env)}}, nil
		},
	}
}

func zsetLuaWay() way.Way {
	return way.Way{
		Name:  "zset-lua",
		What:  "Redis sorted set, the whole job as its member; each of 64 workers calls a Lua script that takes one due member, and if none is due sleeps 100 ms, give or take half; what is taken is lost if the worker is killed",
		Needs: []string{redisServer},
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return zsetLua{zset{dial(env)}}, nil
		},
	}
}

const zsetKey = "delayed-jobs"

// zset is a sorted set of jobs by their due times in milliseconds.
type zset struct{ rdb *redis.Client }

func zsetMember(job way.Job) redis.Z {
	return redis.Z{Score: float64(job.Due.UnixMilli()), Member: named(job.N)}
}

func nowMillis() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

func (z zset) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		return z.rdb.ZAdd(ctx, zsetKey, zsetMember(job)).Err()
	})
}

// Bulk gives each ZADD as many members as a call for many holds.
func (z zset) Bulk(ctx context.Context, jobs way.Jobs) error {
	return jobs.Chunks(bulkSize, func(chunk way.Jobs) error {
		members := make([]redis.Z, chunk.Count)
		for i := range members {
			members[i] = zsetMember(chunk.Job(i))
		}
		return z.rdb.ZAdd(ctx, zsetKey, members...).Err()
	})
}

func (z zset) Close() error { return z.rdb.Close() }

// zsetPoll looks for due members at intervals.
type zsetPoll struct{ zset }

// zsetPage is how many due members a poll takes; after a full one the next follows at
// once.
const zsetPage = 1000

func (z zsetPoll) Work(ctx context.Context, ready func(), run func(n int)) error {
	workers := newPool(run)
	defer workers.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	ready()
	for {
		full, err := z.poll(ctx, workers)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if full && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// poll gives the workers what is due, and says whether there may be more of it.
func (z zsetPoll) poll(ctx context.Context, workers *pool) (full bool, err error) {
	due, err := z.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: zsetKey, ByScore: true, Start: "-inf", Stop: nowMillis(), Count: zsetPage,
	}).Result()
	if err != nil || len(due) == 0 {
		return false, err
	}
	removed, err := z.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, member := range due {
			p.ZRem(ctx, zsetKey, member)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for i, answer := range removed {
		if answer.(*redis.IntCmd).Val() == 0 {
			continue // another worker was faster
		}
		n, err := nOfNamed(due[i])
		if err != nil {
			return false, err
		}
		workers.jobs <- n
	}
	return len(due) == zsetPage, nil
}

// zsetLua takes one due member at a time.
type zsetLua struct{ zset }

// takeOne removes and answers the earliest member that is due at ARGV[1].
const takeOne = `
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
if #due == 0 then return false end
redis.call('ZREM', KEYS[1], due[1])
return due[1]`

func (z zsetLua) Work(ctx context.Context, ready func(), run func(n int)) error {
	script := redis.NewScript(takeOne)
	if err := script.Load(ctx, z.rdb).Err(); err != nil {
		return unlessEnded(ctx, err)
	}
	ready()
	workers, working := errgroup.WithContext(ctx)
	for range way.Workers {
		workers.Go(func() error { return z.loop(working, script, run) })
	}
	return unlessEnded(ctx, workers.Wait())
}

func (z zsetLua) loop(ctx context.Context, script *redis.Script, run func(n int)) error {
	for ctx.Err() == nil {
		member, err := script.Run(ctx, z.rdb, []string{zsetKey}, nowMillis()).Text()
		if errors.Is(err, redis.Nil) {
			pause(ctx, pollEvery/2+rand.N(pollEvery)) // all at the same moments would find less
			continue
		}
		if err != nil {
			return err
		}
		n, err := nOfNamed(member)
		if err != nil {
			return err
		}
		run(n)
	}
	return nil
}
