package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// now is Redis's clock in whole ms, as it is or later.
func (l *load) now() time.Time { return time.Now().Add(l.book.skew).Truncate(time.Millisecond) }

// spec draws a job. If it is due at a time, that stays the same for all tries.
func (l *load) spec(rng *rand.Rand, id string) client.Spec {
	spec := client.Spec{ID: id, Task: taskPlain, IfExists: client.Keep}
	if in := l.drawIn(rng); rng.IntN(2) == 0 {
		spec.At = l.now().Add(in)
	} else {
		spec.In = in
	}
	return spec
}

// floor is when a call that is made now makes a job due, at the earliest.
func (l *load) floor(in time.Duration, at time.Time) int64 {
	if !at.IsZero() {
		return l.book.machine(at)
	}
	// Redis adds to its own clock in whole ms; a fraction is rounded up.
	return l.book.machine(l.now()) + int64(in.Truncate(time.Millisecond))
}

// begin writes down that a job is armed, and gives the step's number, which its
// payload tells the handler.
func (l *load) begin(kind string, spec *client.Spec, work string) int {
	n := l.book.begin(spec.ID, kind, step{op: arm, replace: spec.IfExists == client.Replace, floor: l.floor(spec.In, spec.At)})
	spec.Payload = fmt.Appendf(nil, "%d %s", n, work)
	return n
}

// armed writes down what came of it, and says whether it was answered.
func (l *load) armed(n int, id string, s client.Scheduled, err error) bool {
	switch {
	case err != nil && isAnswer(err):
		l.book.refuse(fmt.Sprintf("scheduling %q", id), err)
		return true
	case err != nil:
		return false
	case s.Kept:
		l.book.answered(id, n, kept, l.book.machine(s.Due), false)
	case s.Replaced:
		l.book.answered(id, n, replaced, l.book.machine(s.Due), false)
	default:
		l.book.answered(id, n, done, l.book.machine(s.Due), false)
	}
	return true
}

// arm schedules a job, and says whether that was answered.
func (l *load) arm(ctx context.Context, rng *rand.Rand, kind string, spec client.Spec, work string) bool {
	return until(ctx, rng, func(ctx context.Context) bool {
		n := l.begin(kind, &spec, work)
		s, err := l.jobs.Schedule(ctx, spec)
		return l.armed(n, spec.ID, s, err)
	})
}

func (l *load) single(ctx context.Context, rng *rand.Rand, id string) {
	l.arm(ctx, rng, "scheduled", l.spec(rng, id), drawWork(rng))
}

// bulk schedules many jobs in one call. What it did not yield is given again.
func (l *load) bulk(ctx context.Context, rng *rand.Rand, first, many int) {
	specs, works := make([]client.Spec, many), make([]string, many)
	for i := range specs {
		specs[i], works[i] = l.spec(rng, fmt.Sprintf("bulk:%d", first+i)), drawWork(rng)
	}
	until(ctx, rng, func(ctx context.Context) bool {
		steps := make([]int, len(specs))
		for i := range specs {
			steps[i] = l.begin("in bulk", &specs[i], works[i])
		}
		armed := 0
		for i, r := range l.jobs.ScheduleMany(ctx, slices.Values(specs)) {
			if !l.armed(steps[i], specs[i].ID, r.Scheduled, r.Err) {
				break
			}
			armed++
		}
		specs, works = specs[armed:], works[armed:]
		return len(specs) == 0
	})
}

// bare makes a job with two SETs, and may give it another time by a third.
func (l *load) bare(ctx context.Context, rng *rand.Rand, id string) {
	work, in := drawWork(rng), max(time.Millisecond, l.drawIn(rng))
	armed := until(ctx, rng, func(ctx context.Context) bool { return l.setBare(ctx, id, in, work) })
	if !armed || rng.IntN(4) > 0 || in < time.Second {
		return
	}
	again := in/2 + l.drawIn(rng)
	n := l.book.begin(id, "bare", step{op: fuse, floor: l.floor(again, time.Time{})})
	answers := l.pipe(ctx, id, func(p redis.Pipeliner, names wire.Names) { p.SetXX(ctx, names.Fuse(id), id, again) })
	if len(answers) == 1 && answers[0].Err() == nil {
		l.book.answered(id, n, done, 0, false)
	}
}

func (l *load) setBare(ctx context.Context, id string, in time.Duration, work string) bool {
	n := l.book.begin(id, "bare", step{op: bare, floor: l.floor(in, time.Time{})})
	answers := l.pipe(ctx, id, func(p redis.Pipeliner, names wire.Names) {
		p.Set(ctx, names.Fuse(id), id, in)
		p.Set(ctx, names.Class(id), fmt.Sprintf("%s %d %s", taskPlain, n, work), 0)
		p.Do(ctx, "WAIT", l.confirm, time.Second.Milliseconds())
	})
	if len(answers) < 3 {
		return false
	}
	fuse, class, waited := answers[0], answers[1], answers[2].(*redis.Cmd)
	confirmed, err := waited.Int()
	switch {
	case fuse.Err() == nil && class.Err() == nil && err == nil && confirmed >= l.confirm:
		l.book.answered(id, n, done, 0, false)
		return true
	case fuse.Err() != nil && class.Err() == nil:
		l.book.orphaned(id, n)
	}
	return false
}

// pipe makes commands on the server that has an id's keys, in one go. Each command
// has its own error. None are answered if no server can be found.
func (l *load) pipe(ctx context.Context, id string, commands func(redis.Pipeliner, wire.Names)) []redis.Cmder {
	store := l.raw.Of(id)
	server, err := store.Server(ctx)
	if err != nil {
		l.raw.Refresh(ctx)
		return nil
	}
	answers, err := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		commands(p, store.Names)
		return nil
	})
	if err != nil {
		l.raw.Refresh(ctx) // a cluster's partition may be elsewhere
	}
	return answers
}

// moved is scheduled, and then given other due times, sooner or later.
func (l *load) moved(ctx context.Context, rng *rand.Rand, id string) {
	spec := l.spec(rng, id)
	if !l.arm(ctx, rng, "rescheduled", spec, drawWork(rng)) {
		return
	}
	for range 1 + rng.IntN(3) {
		pause(ctx, drawUpTo(rng, 2*time.Second))
		again := l.spec(rng, id)
		until(ctx, rng, func(ctx context.Context) bool { return l.move(ctx, id, again.In, again.At) })
	}
}

func (l *load) move(ctx context.Context, id string, in time.Duration, at time.Time) bool {
	n := l.book.begin(id, "", step{op: move, floor: l.floor(in, at)})
	job, err := l.jobs.Reschedule(ctx, id, in, at)
	switch {
	case err == nil && job.RunID != "":
		l.book.answered(id, n, done, l.book.machine(job.At), true)
	case err == nil:
		l.book.answered(id, n, done, l.book.machine(job.Due), false)
	default:
		return l.met(id, n, err)
	}
	return true
}

// met writes down that a change came too late, and says whether it was answered.
func (l *load) met(id string, n int, err error) bool {
	switch {
	case errors.Is(err, client.ErrRunning):
		l.book.answered(id, n, running, 0, false)
	case errors.Is(err, client.ErrNotFound):
		l.book.answered(id, n, gone, 0, false)
	case isAnswer(err):
		l.book.refuse(fmt.Sprintf("changing %q", id), err)
	default:
		return false
	}
	return true
}

// cancelled is scheduled, and cancelled at some time.
func (l *load) cancelled(ctx context.Context, rng *rand.Rand, id string) {
	if !l.arm(ctx, rng, "cancelled", l.spec(rng, id), drawWork(rng)) {
		return
	}
	pause(ctx, l.drawIn(rng)/2)
	until(ctx, rng, func(ctx context.Context) bool {
		n := l.book.begin(id, "", step{op: cancel})
		err := l.jobs.Cancel(ctx, id)
		if err == nil {
			l.book.answered(id, n, done, 0, false)
			return true
		}
		return l.met(id, n, err)
	})
}

// replaced is scheduled, and then scheduled again in its own place.
func (l *load) replaced(ctx context.Context, rng *rand.Rand, id string) {
	if !l.arm(ctx, rng, "replaced", l.spec(rng, id), drawWork(rng)) {
		return
	}
	pause(ctx, l.drawIn(rng)/2)
	spec := l.spec(rng, id)
	spec.IfExists = client.Replace
	l.arm(ctx, rng, "replaced", spec, drawWork(rng))
}
