// Package doctor looks at a Redis, and at what Keyfuse holds in it, for what
// keeps jobs from running, and says how to mend it.
//
// It promises to change nothing that matters: it lays one key of its own,
// keyfuse:doctor:…, for a moment, to see that Redis tells of its expiry. It
// reads keys in small steps with pauses, for a bounded time. Where a Redis does
// not let it look (a managed service, the embedded one), the check says
// "can't see" and what to look at by hand; it never takes that for well.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Status is how a check went.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn" // it works, but may not for long, or nobody could see
	Fail Status = "fail" // jobs are late or lost, or will be
)

// Check is one thing that was looked at. Detail and Fix may quote ids, always
// escaped; Fix has one step a line and is empty if all is well.
type Check struct {
	Name   string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Options say what the daemons are set to. The zero value is for the defaults.
type Options struct {
	// IDPrefix is how ids begin. Empty means any.
	IDPrefix string
	// Embedded: it is the daemon's own Redis, which has no configuration.
	Embedded bool
	// NoNotifications: the daemons are told to do without events.
	NoNotifications bool
	// ScanTime bounds how long keys are read. Zero means 5 s.
	ScanTime time.Duration
}

// perCheck bounds all checks but those that read keys.
const perCheck = 5 * time.Second

// exam is one run of the doctor.
type exam struct {
	rdb   redis.UniversalClient
	opts  Options
	names wire.Names
	db    int

	info  map[string]string // what INFO says; empty if it may not be asked
	now   time.Time         // Redis's clock, when the exam began
	stats client.Stats
	err   error // why there are no stats, or no thresholds
	user  string

	thresholds []client.ThresholdInfo // that can be read
	unreadable error                  // names the others
}

// Run makes all checks and returns them, the most basic first. If Redis can't be
// reached, that is the only one.
func Run(ctx context.Context, rdb redis.UniversalClient, opts Options) []Check {
	if opts.ScanTime == 0 {
		opts.ScanTime = 5 * time.Second
	}
	e := &exam{rdb: rdb, opts: opts, db: wire.DBOf(rdb), user: anyUser}
	checks := []Check{e.reach(ctx)}
	if checks[0].Status == Fail && e.now.IsZero() {
		return checks
	}
	for _, check := range []struct {
		name string
		look func(context.Context) Check
	}{
		{"permissions", e.permissions},
		{"notifications", e.flags},
		{"events", e.events},
		{"eviction", e.eviction},
		{"persistence", e.persistence},
		{"pubsub buffer", e.buffer},
		{"clock", e.clock},
		{"format", e.format},
		{"nodes", e.nodes},
		{"tasks", e.unserved},
		{"overdue", e.overdue},
		{"dead letters", e.dead},
		{"thresholds", e.definitions},
	} {
		checks = append(checks, named(ctx, check.name, perCheck, check.look))
	}
	counters := e.counters(ctx)
	counters.Name = "counters"
	return append(append(checks, counters), e.keys(ctx)...)
}

func named(ctx context.Context, name string, limit time.Duration, look func(context.Context) Check) Check {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := look(ctx)
	c.Name = name
	return c
}

func ok(format string, args ...any) Check {
	return Check{Status: OK, Detail: fmt.Sprintf(format, args...)}
}

func warn(fix, format string, args ...any) Check {
	return Check{Status: Warn, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

func fail(fix, format string, args ...any) Check {
	return Check{Status: Fail, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// blind is a check that Redis does not allow; a Redis that has gone away
// meanwhile is a failure.
func blind(what string, err error, byHand string) Check {
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return fail("start Redis, or look at the way to it, and run the doctor again", "Redis stopped answering: %v", err)
	}
	why := "Redis does not say"
	if err != nil && !errors.Is(err, redis.Nil) {
		why = firstLine(err.Error())
	}
	return warn(byHand, "can't see: %s (%s)", what, why)
}

// embedded answers the checks of what only a Redis of its own has.
func (e *exam) embedded() (Check, bool) {
	return ok("does not apply to the embedded Redis"), e.opts.Embedded
}

// setting reads one setting of Redis; "" with an error if it may not.
func (e *exam) setting(ctx context.Context, name string) (string, error) {
	found, err := e.rdb.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", err
	}
	value, ok := found[name]
	if !ok {
		return "", errNoSetting
	}
	return value, nil
}

// errNoSetting is an answer of Redis: it has no such setting.
var errNoSetting = redis.Nil

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
