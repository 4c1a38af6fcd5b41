package ways

import (
	"context"
	"strconv"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
	"github.com/keyfuse-io/keyfuse/client"
)

func keyfuseCounting() way.Counting {
	return way.Counting{
		Name:  "keyfuse",
		What:  "Keyfuse's hits, one definition for all counters; a firing is a run in Redis, which nobody takes here",
		Needs: []string{redisServer},
		Open: func(ctx context.Context, env way.Env) (way.Counter, error) {
			k, err := openKeyfuse(env)
			if err != nil {
				return nil, err
			}
			_, err = k.jobs.DefineThreshold(ctx, client.Threshold{
				ID: counterPrefix + "*", Task: way.Task, Payload: []byte(way.Payload), Count: way.Threshold, Within: countWithin,
			})
			return keyfuseHits{k}, err
		},
	}
}

const (
	counterPrefix = "sign-ups:"
	// countWithin is a window that outlasts any measurement.
	countWithin = time.Hour
)

// counterOf is the key of the counter that a hit goes to.
func counterOf(hit, counters int) string { return counterPrefix + strconv.Itoa(hit%counters) }

// eachHit is way.Jobs.Each for so many hits.
func eachHit(ctx context.Context, hits, callers int, do func(ctx context.Context, hit int) error) error {
	return way.Jobs{Count: hits}.Each(ctx, callers, func(ctx context.Context, job way.Job) error { return do(ctx, job.N) })
}

type keyfuseHits struct{ keyfuse }

func (k keyfuseHits) Single(ctx context.Context, hits, counters, callers int) error {
	return eachHit(ctx, hits, callers, func(ctx context.Context, hit int) error {
		_, err := k.jobs.Hit(ctx, client.Hit{ID: counterOf(hit, counters)})
		return err
	})
}

func (k keyfuseHits) Bulk(ctx context.Context, hits, counters int) error {
	all := func(yield func(client.Hit) bool) {
		for hit := range hits {
			if !yield(client.Hit{ID: counterOf(hit, counters)}) {
				return
			}
		}
	}
	for _, result := range k.jobs.HitMany(ctx, all) {
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}

// Fired counts the runs in Redis: what fired before its time waits as retrying.
func (k keyfuseHits) Fired(ctx context.Context) (int, error) {
	stats, err := k.jobs.Stats(ctx)
	if err != nil {
		return 0, err
	}
	fired := 0
	for _, task := range stats.Tasks {
		fired += int(task.Retrying)
	}
	return fired, nil
}
