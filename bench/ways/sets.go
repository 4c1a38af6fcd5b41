package ways

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func setsWay() way.Way {
	return way.Way{
		Name:  "plain SETs",
		What:  fmt.Sprintf("no way, but what scheduling on Redis is measured against: go-redis and SET id payload for each job, without due times; bulk is pipelines of %d; nothing ever runs", bulkSize),
		Needs: []string{redisServer},
		Floor: true,
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return sets{dial(env)}, nil
		},
	}
}

// sets is a key for each job, that nobody looks at.
type sets struct{ rdb *redis.Client }

func (s sets) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		return s.rdb.Set(ctx, way.ID(job.N), way.Payload, 0).Err()
	})
}

// Bulk pipelines.
func (s sets) Bulk(ctx context.Context, jobs way.Jobs) error {
	return jobs.Chunks(bulkSize, func(chunk way.Jobs) error {
		_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range chunk.Count {
				p.Set(ctx, way.ID(chunk.Job(i).N), way.Payload, 0)
			}
			return nil
		})
		return err
	})
}

var errOnlySchedules = errors.New("plain SETs only schedule: give the jobs to another way to have them run")

func (sets) Work(context.Context, func(), func(n int)) error { return errOnlySchedules }

func (s sets) Close() error { return s.rdb.Close() }
