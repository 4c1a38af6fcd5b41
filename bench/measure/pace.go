package measure

import (
	"context"
	"fmt"
	"math"
	"time"
)

// pace is how quickly something was done.
type pace struct {
	done int
	took time.Duration
}

// rate is in things a second; 0 if nothing was done.
func (p pace) rate() float64 {
	if p.done == 0 {
		return 0
	}
	return float64(p.done) / max(p.took, time.Nanosecond).Seconds()
}

// needs is how long so many would take.
func (p pace) needs(n int) time.Duration {
	return time.Duration(math.Min(float64(n)/max(p.rate(), 0.001), 1e6) * float64(time.Second))
}

// slice is how much is done before the clock is looked at.
const slice = time.Second

// timed calls do for the things from 0 to before n, in order, for some at a time: that
// takes about a second, or a share of limit, and their number is a multiple of unit. It
// stops once that took limit in all, and ends early with do's error.
func timed(ctx context.Context, n, unit int, limit time.Duration, do func(from, to int) error) (pace, error) {
	var p pace
	for p.done < n && p.took < limit {
		if err := ctx.Err(); err != nil {
			return p, context.Cause(ctx)
		}
		some := unit
		if p.done > 0 {
			some = max(unit, int(p.rate()*min(slice, limit/4).Seconds())/unit*unit)
		}
		to := min(p.done+some, n)
		began := time.Now()
		if err := do(p.done, to); err != nil {
			return p, err
		}
		p = pace{to, p.took + time.Since(began)}
	}
	return p, nil
}

// short notes that there was not time for all.
func short(what string, p pace, n int) string {
	if p.done >= n {
		return ""
	}
	return fmt.Sprintf("%s was stopped after %.0f s, at %s of %s", what, p.took.Seconds(), thousands(p.done), thousands(n))
}

// thousands is a number as people write it.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// sleep waits until a time, or until ctx has ended: then it returns why.
func sleep(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
