package faults

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Thresholds of the load. Hits that go through Keyfuse count under a pattern; those
// that other clients INCR under ids of their own, which are looked at every few
// seconds if no event told of them.
const (
	hitPattern = "hits:*"
	hitIDs     = 20
	incrIDs    = 5
)

func (l *load) define(ctx context.Context) error {
	thresholds := []client.Threshold{{ID: hitPattern, Task: taskCount, Count: 10, Within: 2 * time.Second}}
	for i := range incrIDs {
		thresholds = append(thresholds, client.Threshold{ID: incrID(i), Task: taskCount, Count: 7, Within: 2 * time.Second})
	}
	for _, t := range thresholds {
		if _, err := l.jobs.DefineThreshold(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func incrID(i int) string { return fmt.Sprint("incr:", i) }

// hitAll counts hits until ctx ends; the last ones are answered before end does.
func (l *load) hitAll(ctx, end context.Context, rng *rand.Rand, worker int) {
	for n := 0; ctx.Err() == nil; n++ {
		if worker == 0 {
			l.incr(end, incrID(rng.IntN(incrIDs)))
		} else {
			l.hit(end, rng, fmt.Sprintf("%d/%d", worker, n))
		}
		pause(ctx, drawUpTo(rng, 200*time.Millisecond))
	}
}

// hit counts some hits, each under a request id, until all of them are answered.
func (l *load) hit(ctx context.Context, rng *rand.Rand, name string) {
	hits := make([]client.Hit, 1+rng.IntN(5))
	for i := range hits {
		hits[i] = client.Hit{ID: fmt.Sprint("hits:", rng.IntN(hitIDs)), By: 1 + rng.Int64N(3), RequestID: fmt.Sprint(name, "/", i)}
		l.book.hits(hits[i].ID, 0, 0) // it fires before it is answered
	}
	until(ctx, rng, func(ctx context.Context) bool {
		counted := 0
		for i, r := range l.countAll(ctx, hits) {
			switch {
			case r.Err == nil:
				l.book.hits(hits[i].ID, hits[i].By, 0)
			case isAnswer(r.Err):
				l.book.refuse(fmt.Sprintf("hitting %q", hits[i].ID), r.Err)
			default:
				hits = hits[counted:]
				return false
			}
			counted++
		}
		return true
	})
}

// countAll counts one hit by Hit, and several by HitMany.
func (l *load) countAll(ctx context.Context, hits []client.Hit) iter.Seq2[int, client.HitResult] {
	if len(hits) > 1 {
		return l.jobs.HitMany(ctx, slices.Values(hits))
	}
	return func(yield func(int, client.HitResult) bool) {
		counted, err := l.jobs.Hit(ctx, hits[0])
		yield(0, client.HitResult{Counted: counted, Err: err})
	}
}

// incr counts as any other client does. Without an answer nobody knows whether
// it counted.
func (l *load) incr(ctx context.Context, id string) {
	l.book.hits(id, 0, 0)
	call, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	answers := l.pipe(call, id, func(p redis.Pipeliner, names wire.Names) { p.Incr(call, names.Fuse(id)) })
	if len(answers) == 0 {
		return
	}
	err := answers[0].Err()
	if err == nil {
		l.book.hits(id, 1, 0)
	} else if _, refused := errors.AsType[redis.Error](err); !refused {
		l.book.hits(id, 0, 1)
	}
}
