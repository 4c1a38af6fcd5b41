// Package doctor looks at a Redis, and at what Keyfuse holds in it, for what
// keeps jobs from running, and says how to mend it. Of a cluster it looks at every
// master, and says which one it means wherever they are not all alike.
//
// It promises to change nothing that matters: it lays one key of its own a server,
// keyfuse:doctor:…, for a moment, to see that Redis tells of its expiry. It
// reads keys in small steps with pauses, for a bounded time, which all masters
// share. Where a Redis does
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

	extent time.Duration // of what Detail tells: of servers that are well, the greatest is told
}

// Options say what the daemons are set to. The zero value is for the defaults.
type Options struct {
	// IDPrefix is how ids begin. Empty means any.
	IDPrefix string
	// Embedded: it is the daemon's own Redis, which has no configuration.
	Embedded bool
	// Sentinel: Redis is the master that Sentinel names, so a replica is to take over.
	Sentinel bool
	// NoNotifications: the daemons are told to do without events.
	NoNotifications bool
	// WaitReplicas is how many replicas must confirm what is scheduled. Zero means none.
	WaitReplicas int
	// ScanTime bounds how long keys are read. Zero means 5 s.
	ScanTime time.Duration
}

// perCheck bounds all checks but those that read keys.
const perCheck = 5 * time.Second

// Run makes all checks and returns them, the most basic first. If Redis can't be
// reached, that is the only one.
func Run(ctx context.Context, rdb redis.UniversalClient, opts Options) []Check {
	if opts.ScanTime == 0 {
		opts.ScanTime = 5 * time.Second
	}
	e := &exam{rdb: rdb, opts: opts}
	checks := []Check{named(ctx, look{"redis", e.reach})}
	if len(e.servers) == 0 {
		return checks
	}
	for _, l := range e.looks() {
		checks = append(checks, named(ctx, l))
	}
	counters := e.counters(ctx)
	counters.Name = "counters"
	return append(append(checks, counters), e.keys(ctx)...)
}

// look is a way to make a check.
type look struct {
	name  string
	check func(context.Context) Check
}

func (e *exam) looks() []look {
	looks := []look{
		{"permissions", e.everywhere((*server).permissions)},
		{"notifications", e.everywhere((*server).flags)},
		{"events", e.everywhere((*server).events)},
		{"eviction", e.everywhere((*server).eviction)},
		{"persistence", e.everywhere((*server).persistence)},
		{"replicas", e.everywhere((*server).replicas)},
		{"pubsub buffer", e.everywhere((*server).buffer)},
		{"clock", e.everywhere((*server).clock)},
		{"format", e.format},
		{"nodes", e.nodes},
		{"tasks", e.unserved},
		{"overdue", e.overdue},
		{"dead letters", e.dead},
		{"thresholds", e.definitions},
	}
	if e.space.IsCluster() {
		looks = append([]look{{"cluster", e.everywhere((*server).state)}, {"partitions", e.partitions}}, looks...)
	}
	return looks
}

func named(ctx context.Context, l look) Check {
	ctx, cancel := context.WithTimeout(ctx, perCheck)
	defer cancel()
	c := l.check(ctx)
	c.Name = l.name
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

// blind is a check that Redis does not allow; a Redis that has gone away, or a
// cluster that is down, is a failure.
func blind(what string, err error, byHand string) Check {
	_, answered := errors.AsType[redis.Error](err)
	if err != nil && (!answered || strings.Contains(err.Error(), "CLUSTERDOWN")) {
		return fail("start Redis, or look at the way to it, and run the doctor again", "Redis stopped answering: %s", firstLine(err.Error()))
	}
	why := "Redis does not say"
	if err != nil && !errors.Is(err, redis.Nil) {
		why = firstLine(err.Error())
	}
	return warn(byHand, "can't see: %s (%s)", what, why)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
