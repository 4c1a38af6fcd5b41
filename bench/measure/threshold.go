package measure

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// threshold measures how quickly counters are hit, and whether each fires as often as
// it must.
func threshold(ctx context.Context, l *Lab) error {
	stores, env, err := l.start(ctx, l.Counting.Needs)
	if err == nil {
		err = l.count(ctx, env)
	}
	return errors.Join(err, stores.stop())
}

func (l *Lab) count(ctx context.Context, env way.Env) error {
	counter, err := l.Counting.Open(ctx, env)
	if err != nil {
		return err
	}
	return errors.Join(l.hits(ctx, counter), counter.Close())
}

func (l *Lab) hits(ctx context.Context, c way.Counter) error {
	single := func(callers int) func(int) error {
		return func(n int) error { return c.Single(ctx, n, Counters, callers) }
	}
	hit := 0
	for _, part := range []struct {
		figure string
		hits   int
		do     func(n int) error
	}{
		{"hits-1", l.Sizes.OneHits, single(1)},
		{"hits-32", l.Sizes.ManyHits, single(Callers)},
		{"hits-bulk", l.Sizes.BulkHits, func(n int) error { return c.Bulk(ctx, n, Counters) }},
	} {
		n, err := l.hitRate(ctx, part.figure, part.hits, part.do)
		if errors.Is(err, way.ErrNoBulk) {
			l.absent(part.figure, 0, err.Error())
		} else if err != nil {
			return err
		}
		hit += n
	}
	fired, err := c.Fired(ctx)
	if err != nil {
		return err
	}
	must := hit / Counters / way.Threshold * Counters
	l.tell("fired-wrong", 0, math.Abs(float64(fired-must)), wrong(fired, must))
	return nil
}

func wrong(fired, must int) string {
	if fired == must {
		return ""
	}
	return fmt.Sprintf("%s in place of %s", thousands(fired), thousands(must))
}

// hitRate measures how quickly so many hits are made, after a few that are not timed.
// It returns how many were made with those: each counter has got as many as each other.
func (l *Lab) hitRate(ctx context.Context, figure string, n int, do func(n int) error) (int, error) {
	if err := do(Counters); err != nil {
		return 0, err
	}
	p, err := timed(ctx, n, Counters, l.Sizes.Scheduling, func(from, to int) error { return do(to - from) })
	if err != nil {
		return 0, err
	}
	l.tell(figure, 0, p.rate(), short("hitting", p, n))
	return Counters + p.done, nil
}
