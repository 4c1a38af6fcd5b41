// Package bench measures Keyfuse against a Redis, under names of its own, and
// cleans up after itself: `keyfuse bench` and the Go benchmarks call it. What it
// measures is what README promises; all figures come from one engine in this
// process and so share the machine with Redis.
package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

// Size is how much to measure with. Zero fields are left at DefaultSize's.
type Size struct {
	Burst   int           // jobs that are due at one moment
	Spread  int           // jobs that come due over Over
	Over    time.Duration // see Spread
	Pending int           // jobs that are pending beside the spread ones
	Bare    int           // bare keys that expire at one moment
	Handler time.Duration // that the handler of a bare key takes
	Idle    time.Duration // to watch an idle engine for
	Hits    int           // of counters, five times each way
}

// DefaultSize is what the promises are made for.
func DefaultSize() Size {
	return Size{
		Burst: 50_000, Spread: 10_000, Over: 30 * time.Second, Pending: 1_000_000,
		Bare: 600_000, Handler: 5 * time.Millisecond, Idle: 15 * time.Second,
		Hits: 100_000,
	}
}

func (s Size) complete() Size {
	d := DefaultSize()
	s.Burst, s.Spread, s.Over = cmp.Or(s.Burst, d.Burst), cmp.Or(s.Spread, d.Spread), cmp.Or(s.Over, d.Over)
	s.Pending, s.Bare = cmp.Or(s.Pending, d.Pending), cmp.Or(s.Bare, d.Bare)
	s.Handler, s.Idle, s.Hits = cmp.Or(s.Handler, d.Handler), cmp.Or(s.Idle, d.Idle), cmp.Or(s.Hits, d.Hits)
	return s
}

// Figure is one measured value.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Target is what it must reach, in words; empty if it only informs.
	Target string `json:"target,omitempty"`
	Met    bool   `json:"met"` // true without a target
}

// Bench measures on one Redis.
type Bench struct {
	rdb   redis.UniversalClient
	space *wire.Space
	jobs  *client.Client
	size  Size
	name  string // begins every id
	task  string
	log   *slog.Logger
}

// New makes a bench with names that no other has.
func New(rdb redis.UniversalClient, size Size, log *slog.Logger) (*Bench, error) {
	id := strings.ToLower(rand.Text()[:6])
	b := &Bench{rdb: rdb, size: size.complete(), name: "b:" + id + ":", task: "bench-" + id, log: log}
	var err error
	if b.space, err = wire.NewSpace(rdb); err != nil {
		return nil, err
	}
	b.jobs, err = client.New(rdb, client.Config{IDPrefix: b.name})
	return b, err
}

// A Measurement is one of the things that can be measured.
type Measurement struct {
	Name string
	Run  func(b *Bench, ctx context.Context) ([]Figure, error)
}

// All are the measurements, in the order in which they make sense.
func All() []Measurement {
	return []Measurement{
		{"schedule", (*Bench).schedule},
		{"burst", (*Bench).burst},
		{"lateness", (*Bench).lateness},
		{"idle", (*Bench).idle},
		{"bare", (*Bench).bare},
		{"hits", (*Bench).hits},
	}
}

// Measure runs one measurement and removes what it left in Redis.
func (b *Bench) Measure(ctx context.Context, m Measurement) (figures []Figure, err error) {
	defer func() {
		if cleanErr := b.clean(context.WithoutCancel(ctx)); err == nil {
			err = cleanErr
		}
	}()
	return m.Run(b, ctx)
}

// running is an engine at work.
type running struct {
	firings chan engine.Firing
	stop    func() error
}

// engine starts an engine whose handler takes so long, and waits until it is
// ready. Each firing goes to the channel; the bench takes them all.
func (b *Bench) engine(ctx context.Context, handler time.Duration, firings int) (*running, error) {
	reg := registry.New()
	reg.Register(b.task, registry.Func(func(ctx context.Context, _ registry.Job) error {
		if handler > 0 {
			timer := time.NewTimer(handler)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		return nil
	}), registry.Options{})
	r := &running{firings: make(chan engine.Firing, firings)}
	ready := make(chan struct{})
	e, err := engine.New(b.rdb, reg, engine.Config{
		IDPrefix: b.name, Logger: b.log,
		Observer: engine.Observer{
			Ready:   func() { close(ready) },
			Settled: func(f engine.Firing) { r.firings <- f },
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	var failed error
	run.Go(func() { failed = e.Run(ctx) })
	r.stop = func() error {
		cancel()
		run.Wait()
		return failed
	}
	select {
	case <-ready:
		return r, nil
	case <-ctx.Done():
		return nil, r.stop()
	}
}

// take waits for n firings.
func (r *running) take(ctx context.Context, n int) ([]engine.Firing, error) {
	firings := make([]engine.Firing, 0, n)
	for len(firings) < n {
		select {
		case f := <-r.firings:
			firings = append(firings, f)
		case <-ctx.Done():
			return firings, fmt.Errorf("%d of %d jobs ran: %w", len(firings), n, context.Cause(ctx))
		}
	}
	return firings, nil
}

const idDigits = 7

// id is 20 bytes long for a kind of four letters, which is what the memory of a
// pending job is promised for.
func (b *Bench) id(kind string, i int) string {
	number := strconv.Itoa(i)
	return b.name + kind + strings.Repeat("0", max(0, idDigits-len(number))) + number
}

var payload = []byte(`{"order":42,"customer":"c-1234567890","action":"cancel","n":1}  `)

// arm schedules n jobs in bulk; at says when each is due.
func (b *Bench) arm(ctx context.Context, kind string, n int, at func(i int) time.Time) error {
	specs := func(yield func(client.Spec) bool) {
		for i := range n {
			if !yield(client.Spec{ID: b.id(kind, i), Task: b.task, Payload: payload, At: at(i)}) {
				return
			}
		}
	}
	return firstError(b.jobs.ScheduleMany(ctx, iter.Seq[client.Spec](specs)))
}

func firstError(results iter.Seq2[int, client.Result]) error {
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// redisNow is the time by the clock that judges.
func (b *Bench) redisNow(ctx context.Context) (time.Time, error) {
	return b.rdb.Time(ctx).Result()
}

// percentile of sorted values.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p))]
}

func lates(firings []engine.Firing) []time.Duration {
	values := make([]time.Duration, len(firings))
	for i, f := range firings {
		values[i] = f.Late
	}
	slices.Sort(values)
	return values
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func atLeast(name string, value float64, unit string, target float64) Figure {
	return Figure{name, value, unit, fmt.Sprintf("at least %g", target), value >= target}
}

func atMost(name string, value float64, unit string, target float64) Figure {
	return Figure{name, value, unit, fmt.Sprintf("at most %g", target), value <= target}
}

func inform(name string, value float64, unit string) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Met: true}
}

// clean removes everything that bears this bench's names. It scans, so that
// it also finds what an interrupted measurement left.
func (b *Bench) clean(ctx context.Context) error {
	for _, store := range b.space.All() {
		if err := b.cleanIn(ctx, store); err != nil {
			return err
		}
	}
	return b.forgetThresholds(ctx)
}

func (b *Bench) cleanIn(ctx context.Context, store *wire.Store) error {
	server, err := store.Server(ctx)
	if err != nil {
		return err
	}
	for _, pattern := range []string{store.Fuse(b.name) + "*", store.Class(b.name) + "*"} {
		for cursor := uint64(0); ; {
			keys, next, err := server.Scan(ctx, cursor, pattern, 5000).Result()
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				if err := server.Unlink(ctx, keys...).Err(); err != nil {
					return err
				}
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	for _, kind := range []string{"due", "running", "retrying", "dead", "runs"} {
		if err := server.Unlink(ctx, store.OfTask(kind, b.task)).Err(); err != nil {
			return err
		}
	}
	// The runs that the index by id holds.
	if err := server.ZRemRangeByLex(ctx, store.Of("ids"), "["+b.name, "["+b.name+"\xff").Err(); err != nil {
		return err
	}
	if err := forgetWindows(ctx, server, store, b.name); err != nil {
		return err
	}
	return server.SRem(ctx, store.Of("tasks"), b.task).Err()
}
