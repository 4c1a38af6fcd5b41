package client_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// benchCount is a threshold that is crossed now and then, as it is in use.
const benchCount = 1000

// BenchmarkHit compares hits with what they replace, a plain INCR: one at a
// time, and many from one process. An operation is a hit; HitMany is to reach
// 60 % of a pipeline of INCR.
func BenchmarkHit(b *testing.B) {
	for _, counters := range []int{1, 10_000} {
		ids := make([]string, counters)
		for i := range ids {
			ids[i] = fmt.Sprintf("bench:%05d", i)
		}
		for _, way := range []struct {
			name  string
			count func(ctx context.Context, rdb *redis.Client, c *client.Client, ids iter.Seq[string]) error
		}{
			{"one=incr", incrEach}, {"one=hit", hitEach}, {"many=incr", incrMany}, {"many=hit", hitMany},
		} {
			b.Run(fmt.Sprintf("%s/counters=%d", way.name, counters), func(b *testing.B) {
				rdb := redistest.Start(b).Client(b)
				c := benchClient(b, rdb)
				// Every counter is there, and its window open, before the clock starts.
				if err := way.count(b.Context(), rdb, c, slices.Values(ids)); err != nil {
					b.Fatal(err)
				}
				round := func(yield func(string) bool) {
					for i := 0; b.Loop() && yield(ids[i%len(ids)]); i++ {
					}
				}
				if err := way.count(b.Context(), rdb, c, round); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hits/s")
			})
		}
	}
}

func benchClient(b *testing.B, rdb *redis.Client) *client.Client {
	b.Helper()
	c, err := client.New(rdb, client.Config{})
	if err != nil {
		b.Fatal(err)
	}
	_, err = c.DefineThreshold(b.Context(), client.Threshold{ID: "bench:*", Task: "mail", Count: benchCount, Within: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func incrEach(ctx context.Context, rdb *redis.Client, _ *client.Client, ids iter.Seq[string]) error {
	for id := range ids {
		if err := rdb.Incr(ctx, id).Err(); err != nil {
			return err
		}
	}
	return nil
}

func hitEach(ctx context.Context, _ *redis.Client, c *client.Client, ids iter.Seq[string]) error {
	for id := range ids {
		if _, err := c.Hit(ctx, client.Hit{ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// incrMany sends as many commands at once as HitMany does hits.
func incrMany(ctx context.Context, rdb *redis.Client, _ *client.Client, ids iter.Seq[string]) error {
	pipe := rdb.Pipeline()
	for id := range ids {
		pipe.Incr(ctx, id)
		if pipe.Len() == wire.MaxHits {
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
		}
	}
	_, err := pipe.Exec(ctx)
	return err
}

func hitMany(ctx context.Context, _ *redis.Client, c *client.Client, ids iter.Seq[string]) error {
	hits := func(yield func(client.Hit) bool) {
		for id := range ids {
			if !yield(client.Hit{ID: id}) {
				return
			}
		}
	}
	for _, result := range c.HitMany(ctx, hits) {
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}
