package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// How hits are measured: a few times in turn, because the machine is never quiet.
const (
	hitRounds   = 5
	hitCounters = 10_000
	hitPipeline = 500
)

// hits measures how fast hits are counted, beside what any client can do at
// best: plain INCR, in pipelines. One counter fires with each 100th hit; the
// counters of a pattern open a window each.
func (b *Bench) hits(ctx context.Context) ([]Figure, error) {
	one, many := b.name+"one", b.name+"many:"
	for _, t := range []client.Threshold{
		{ID: one, Task: b.task, Count: 100, Within: time.Hour},
		{ID: many + "*", Task: b.task, Count: 1_000_000, Within: time.Hour},
	} {
		if _, err := b.jobs.DefineThreshold(ctx, t); err != nil {
			return nil, err
		}
	}
	ofOne := func(int) string { return one }
	ofMany := func(i int) string { return fmt.Sprintf("%s%d", many, i%hitCounters) }
	plain := func(key func(int) string) func() error {
		return func() error { return b.incrAll(ctx, func(i int) string { return b.name + "plain:" + key(i) }) }
	}
	ours := func(key func(int) string) func() error {
		return func() error { return b.hitAll(ctx, key) }
	}
	rates, err := alternate(b.size.Hits, plain(ofOne), ours(ofOne), plain(ofMany), ours(ofMany))
	if err != nil {
		return nil, err
	}
	solo, alone := max(1, b.size.Hits/50), b.name+"plain"
	single, err := alternate(solo,
		func() error {
			for range solo {
				if err := b.rdb.Incr(ctx, b.space.Of(alone).Fuse(alone)).Err(); err != nil {
					return err
				}
			}
			return nil
		},
		func() error {
			for range solo {
				if _, err := b.jobs.Hit(ctx, client.Hit{ID: one}); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return []Figure{
		inform("INCR in pipelines, one counter", rates[0], "a second"),
		inform("hits in bulk, one counter, N 100", rates[1], "hits/s"),
		atLeast("hits in bulk, to INCR in pipelines", 100*rates[1]/rates[0], "%", 60),
		inform("INCR in pipelines, 10,000 counters", rates[2], "a second"),
		inform("hits in bulk, 10,000 counters of a pattern", rates[3], "hits/s"),
		inform("hits in bulk, to INCR in pipelines, 10,000 counters", 100*rates[3]/rates[2], "%"),
		inform("INCR, one caller", single[0], "a second"),
		inform("hits, one caller", single[1], "hits/s"),
	}, nil
}

// alternate runs some ways to do n things in turn, and gives the median rate of
// each.
func alternate(n int, ways ...func() error) ([]float64, error) {
	rates := make([][]float64, len(ways))
	for range hitRounds {
		for i, way := range ways {
			start := time.Now()
			if err := way(); err != nil {
				return nil, err
			}
			rates[i] = append(rates[i], float64(n)/time.Since(start).Seconds())
		}
	}
	medians := make([]float64, len(ways))
	for i := range rates {
		slices.Sort(rates[i])
		medians[i] = rates[i][len(rates[i])/2]
	}
	return medians, nil
}

func (b *Bench) incrAll(ctx context.Context, key func(i int) string) error {
	for from := 0; from < b.size.Hits; from += hitPipeline {
		_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range hitPipeline {
				id := key(from + i)
				p.Incr(ctx, b.space.Of(id).Fuse(id))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) hitAll(ctx context.Context, key func(i int) string) error {
	hits := func(yield func(client.Hit) bool) {
		for i := range b.size.Hits {
			if !yield(client.Hit{ID: key(i)}) {
				return
			}
		}
	}
	for _, r := range b.jobs.HitMany(ctx, hits) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// forgetThresholds removes this bench's definitions.
func (b *Bench) forgetThresholds(ctx context.Context) error {
	for _, id := range []string{b.name + "one", b.name + "many:*"} {
		_ = b.jobs.RemoveThreshold(ctx, id) // most measurements have none
		for _, store := range b.space.All() {
			if err := b.rdb.HDel(ctx, store.Of("open"), id).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

func forgetWindows(ctx context.Context, server redis.Cmdable, store *wire.Store, prefix string) error {
	windows := store.Of("windows")
	for cursor := uint64(0); ; {
		fields, next, err := server.HScan(ctx, windows, cursor, prefix+"*", 1000).Result()
		if err != nil {
			return err
		}
		for i := 0; i < len(fields); i += 2 {
			if err := server.HDel(ctx, windows, fields[i]).Err(); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
