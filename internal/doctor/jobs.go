package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// format looks whether this release can read what is there.
func (e *exam) format(ctx context.Context) Check {
	stores := e.space.All()
	found := make([]*redis.StringCmd, len(stores))
	// Each tells its own error.
	_, _ = e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, store := range stores {
			found[i] = p.Get(ctx, store.Of("format"))
		}
		return nil
	})
	used := 0
	for i, store := range stores {
		version, err := found[i].Result()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			return blind("the wire format's version", err, "GET "+store.Of("format"))
		case version != strconv.Itoa(wire.Format):
			return fail("use the release of Keyfuse that the daemons have, or another database; docs/operations.md says how to upgrade",
				"the data have format %q, this release reads %d", version, wire.Format)
		}
		used++
	}
	switch used {
	case 0:
		return ok("no daemon has used this database yet")
	case len(stores):
		return ok("format %d", wire.Format)
	}
	return ok("format %d; no daemon has used %d of %d partitions yet", wire.Format, len(stores)-used, len(stores))
}

func (e *exam) nodes(context.Context) Check {
	if e.err != nil {
		return blind("the nodes", e.err, "mend what the checks above say")
	}
	var degraded []string
	for _, d := range e.daemons {
		if d.Degraded != "" {
			degraded = append(degraded, fmt.Sprintf("%s: %s", d.Name, d.Degraded))
		}
	}
	switch {
	case len(e.daemons) == 0:
		return warn("keyfuse serve", "no daemon is alive: jobs wait")
	case len(degraded) > 0:
		return warn("see the checks of notifications and events, and that node's log",
			"%d of %d nodes hear no events, and poll: %s", len(degraded), len(e.daemons), strings.Join(degraded, "; "))
	}
	return ok("%d alive", len(e.daemons))
}

func (e *exam) served(task string) bool {
	return slices.ContainsFunc(e.daemons, func(d *daemon) bool { return slices.Contains(d.Tasks, task) })
}

// unserved finds tasks with jobs that no live node would run.
func (e *exam) unserved(context.Context) Check {
	if e.err != nil {
		return blind("the tasks", e.err, "mend what the checks above say")
	}
	var unknown, paused []string
	for _, t := range e.tasks {
		waiting := t.Pending + t.Retrying + t.Running
		if waiting > 0 && !e.served(t.Task) {
			unknown = append(unknown, fmt.Sprintf("%s (%d)", t.Task, waiting))
		}
		if t.Paused {
			paused = append(paused, t.Task)
		}
	}
	switch {
	case len(unknown) > 0:
		return warn("start a daemon that serves them, or correct the name: keyfuse list --task TASK shows the jobs",
			"no live node serves %s", some(unknown))
	case len(paused) > 0:
		return warn("keyfuse resume TASK", "paused: %s", some(paused))
	}
	return ok("every task that has jobs is served")
}

// overdueAfter is how late a job must be to be told of.
const overdueAfter = 5 * time.Second

// overdue finds jobs that should have started. The index may hold an older time
// than the fuse, for a moment; after some seconds a node has moved it.
func (e *exam) overdue(ctx context.Context) Check {
	if e.err != nil {
		return blind("jobs that are late", e.err, "mend what the checks above say")
	}
	var late []string
	for _, t := range e.tasks {
		if t.Paused {
			continue
		}
		n, by, err := e.late(ctx, t.Task)
		if err != nil {
			return blind("jobs that are late", err, "keyfuse list")
		}
		if n > 0 {
			late = append(late, fmt.Sprintf("%s: %d, by up to %s", t.Task, n, config.FormatDuration(by.Round(time.Second))))
		}
	}
	if len(late) > 0 {
		return warn("see that a daemon serves the task and has room: keyfuse stats; raise engine.concurrency or start more", "late jobs: %s", some(late))
	}
	return ok("no job is late by more than %s", overdueAfter)
}

// late is how many jobs of a task should have started, and by how much the first.
func (e *exam) late(ctx context.Context, task string) (n int64, by time.Duration, err error) {
	stores := e.space.All()
	counts, firsts := make([]*redis.IntCmd, len(stores)), make([]*redis.ZSliceCmd, len(stores))
	_, err = e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, store := range stores {
			key, limit := store.OfTask("due", task), e.now(store).Add(-overdueAfter)
			counts[i] = p.ZCount(ctx, key, "-inf", strconv.FormatInt(limit.UnixMilli(), 10))
			firsts[i] = p.ZRangeWithScores(ctx, key, 0, 0)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	for i, store := range stores {
		if first := firsts[i].Val(); counts[i].Val() > 0 && len(first) > 0 { // else they started meanwhile
			n += counts[i].Val()
			by = max(by, e.now(store).Sub(time.UnixMilli(int64(first[0].Score))))
		}
	}
	return n, by, nil
}

func (e *exam) dead(context.Context) Check {
	if e.err != nil {
		return blind("the dead letters", e.err, "mend what the checks above say")
	}
	var dead []string
	for _, t := range e.tasks {
		if t.Dead > 0 {
			dead = append(dead, fmt.Sprintf("%s: %d", t.Task, t.Dead))
		}
	}
	if len(dead) > 0 {
		return warn("keyfuse dead list says why; then keyfuse dead requeue, or delete", "dead letters: %s", some(dead))
	}
	return ok("none")
}
