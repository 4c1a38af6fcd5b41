package bench

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// schedule measures what it costs to arm jobs: the rate, one at a time and in
// bulk, and the memory of one that is pending.
func (b *Bench) schedule(ctx context.Context) ([]Figure, error) {
	const single, bulk = 2000, 100_000
	due := time.Now().Add(24 * time.Hour)
	start := time.Now()
	for i := range single {
		_, err := b.jobs.Schedule(ctx, client.Spec{ID: b.id("solo", i), Task: b.task, Payload: payload, At: due})
		if err != nil {
			return nil, err
		}
	}
	one := float64(single) / time.Since(start).Seconds()
	before, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	start = time.Now()
	// Spread over a day, as real jobs are.
	err = b.arm(ctx, "bulk", bulk, func(i int) time.Time { return due.Add(time.Duration(i) * time.Second) })
	if err != nil {
		return nil, err
	}
	many := float64(bulk) / time.Since(start).Seconds()
	after, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	return []Figure{
		inform("schedule, one caller", one, "jobs/s"),
		atLeast("schedule, bulk", many, "jobs/s", 60_000),
		atMost("memory a pending job", (after-before)/bulk, "bytes", 450),
	}, nil
}

// burst measures how fast jobs are run that are due at one moment, from that
// moment until the last one is settled.
func (b *Bench) burst(ctx context.Context) ([]Figure, error) {
	n := b.size.Burst
	r, err := b.engine(ctx, 0, n)
	if err != nil {
		return nil, err
	}
	defer r.stop() //nolint:errcheck // it was measured already
	now, err := b.redisNow(ctx)
	if err != nil {
		return nil, err
	}
	due := now.Add(2*time.Second + time.Duration(n)*25*time.Microsecond)
	if err := b.arm(ctx, "many", n, func(int) time.Time { return due }); err != nil {
		return nil, err
	}
	firings, err := r.take(ctx, n)
	if err != nil {
		return nil, err
	}
	end, err := b.redisNow(ctx)
	if err != nil {
		return nil, err
	}
	late := lates(firings)
	return []Figure{
		atLeast("burst, due to settled", float64(n)/end.Sub(due).Seconds(), "runs/s", 50_000),
		inform("burst, lateness p50", millis(percentile(late, 0.5)), "ms"),
		inform("burst, lateness max", millis(late[n-1]), "ms"),
		atLeast("burst, earliest", millis(late[0]), "ms after due", 0),
	}, nil
}

// lateness measures how precisely jobs run beside many pending ones.
func (b *Bench) lateness(ctx context.Context) ([]Figure, error) {
	r, err := b.engine(ctx, 0, b.size.Spread)
	if err != nil {
		return nil, err
	}
	defer r.stop() //nolint:errcheck // it was measured already
	now, err := b.redisNow(ctx)
	if err != nil {
		return nil, err
	}
	far := now.Add(24 * time.Hour)
	if err := b.arm(ctx, "wait", b.size.Pending, func(i int) time.Time { return far.Add(time.Duration(i) * time.Millisecond) }); err != nil {
		return nil, err
	}
	if now, err = b.redisNow(ctx); err != nil {
		return nil, err
	}
	first, step := now.Add(2*time.Second), b.size.Over/time.Duration(b.size.Spread)
	if err := b.arm(ctx, "near", b.size.Spread, func(i int) time.Time { return first.Add(time.Duration(i) * step) }); err != nil {
		return nil, err
	}
	firings, err := r.take(ctx, b.size.Spread)
	if err != nil {
		return nil, err
	}
	late := lates(firings)
	return []Figure{
		atMost("lateness p50", millis(percentile(late, 0.5)), "ms", 3),
		atMost("lateness p99", millis(percentile(late, 0.99)), "ms", 10),
		inform("lateness max", millis(late[len(late)-1]), "ms"),
		atLeast("earliest", millis(late[0]), "ms after due", 0),
	}, nil
}

// idle measures what a daemon costs that has nothing to do.
func (b *Bench) idle(ctx context.Context) ([]Figure, error) {
	r, err := b.engine(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	defer r.stop() //nolint:errcheck // it was measured already
	// One that is far away, so that there is something to wait for.
	if err := b.arm(ctx, "wait", 1, func(int) time.Time { return time.Now().Add(time.Hour) }); err != nil {
		return nil, err
	}
	var commands counter
	b.rdb.AddHook(&commands)
	timer := time.NewTimer(b.size.Idle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	sent := float64(commands.sent.Load())
	return []Figure{atMost("commands of an idle daemon", sent/b.size.Idle.Seconds(), "a second", 1)}, nil
}

// bare measures what becomes of bare keys that expire all at once while the
// handlers are slow: nothing may be lost, and memory must stay bounded.
func (b *Bench) bare(ctx context.Context) ([]Figure, error) {
	n := b.size.Bare
	r, err := b.engine(ctx, b.size.Handler, n)
	if err != nil {
		return nil, err
	}
	defer r.stop() //nolint:errcheck // it was measured already
	now, err := b.redisNow(ctx)
	if err != nil {
		return nil, err
	}
	due := now.Add(5*time.Second + time.Duration(n)*15*time.Microsecond)
	if err := b.setBare(ctx, n, due); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, n)
	twice, peak := 0, uint64(0)
	for len(seen) < n {
		select {
		case f := <-r.firings:
			if seen[f.Job.ID] {
				twice++
			}
			if seen[f.Job.ID] = true; len(seen)%10_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			}
		case <-ctx.Done():
			return []Figure{atMost("bare keys lost", float64(n-len(seen)), "jobs", 0)}, nil
		}
	}
	return []Figure{
		atMost("bare keys lost", 0, "jobs", 0),
		atMost("bare keys run twice", float64(twice), "jobs", 0),
		inform("bare keys, due to settled", float64(n)/time.Since(due).Seconds(), "runs/s"),
		inform("heap of the process at most, its record of ids included", float64(peak)/(1<<20), "MiB"),
	}, nil
}

// setBare sets bare jobs as any client would, in pipelines.
func (b *Bench) setBare(ctx context.Context, n int, due time.Time) error {
	const window = 1000
	for from := 0; from < n; from += window {
		_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < min(from+window, n); i++ {
				id := b.id("bare", i)
				names := b.space.Of(id)
				p.Do(ctx, "SET", names.Fuse(id), id, "PXAT", due.UnixMilli())
				p.Set(ctx, names.Class(id), b.task, 0)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) memory(ctx context.Context) (float64, error) {
	return b.info(ctx, "memory", "used_memory")
}

// counter counts the commands that a client sends.
type counter struct{ sent atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// info is a number that INFO tells, of all servers together.
func (b *Bench) info(ctx context.Context, section, field string) (float64, error) {
	sum, asked := 0.0, make(map[redis.UniversalClient]bool)
	for _, store := range b.space.All() {
		server, err := store.Server(ctx)
		if err != nil {
			return 0, err
		}
		if asked[server] {
			continue
		}
		asked[server] = true
		text, err := server.Info(ctx, section).Result()
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, field+":"); ok {
				n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}
