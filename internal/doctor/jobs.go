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
	found, err := e.rdb.Get(ctx, e.names.Of("format")).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return ok("no daemon has used this database yet")
	case err != nil:
		return blind("the wire format's version", err, "GET "+e.names.Of("format"))
	case found != strconv.Itoa(wire.Format):
		return fail("use the release of Keyfuse that the daemons have, or another database",
			"the data have format %q, this release reads %d", found, wire.Format)
	}
	return ok("format %s", found)
}

// alive are the nodes that hold a lease; the others ended without a word.
func (e *exam) alive() (names, degraded []string) {
	for _, n := range e.stats.Nodes {
		if !n.Until.After(e.now) {
			continue
		}
		names = append(names, n.Name)
		if n.Degraded != "" {
			degraded = append(degraded, fmt.Sprintf("%s: %s", n.Name, n.Degraded))
		}
	}
	return names, degraded
}

func (e *exam) nodes(context.Context) Check {
	if e.err != nil {
		return blind("the nodes", e.err, "mend what the checks above say")
	}
	names, degraded := e.alive()
	switch {
	case len(names) == 0:
		return warn("keyfuse serve", "no daemon is alive: jobs wait")
	case len(degraded) > 0:
		return warn("see the checks of notifications and events, and that node's log",
			"%d of %d nodes hear no events, and poll: %s", len(degraded), len(names), strings.Join(degraded, "; "))
	}
	return ok("%d alive", len(names))
}

func (e *exam) served(task string) bool {
	for _, n := range e.stats.Nodes {
		if n.Until.After(e.now) && slices.Contains(n.Tasks, task) {
			return true
		}
	}
	return false
}

// unserved finds tasks with jobs that no live node would run.
func (e *exam) unserved(context.Context) Check {
	if e.err != nil {
		return blind("the tasks", e.err, "mend what the checks above say")
	}
	var unknown, paused []string
	for _, t := range e.stats.Tasks {
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
	limit := strconv.FormatInt(e.now.Add(-overdueAfter).UnixMilli(), 10)
	for _, t := range e.stats.Tasks {
		if t.Paused {
			continue
		}
		key := e.names.OfTask("due", t.Task)
		n, err := e.rdb.ZCount(ctx, key, "-inf", limit).Result()
		if err != nil {
			return blind("jobs that are late", err, "keyfuse list")
		}
		if n == 0 {
			continue
		}
		first, err := e.rdb.ZRangeWithScores(ctx, key, 0, 0).Result()
		if err != nil || len(first) == 0 {
			continue // they started meanwhile
		}
		by := e.now.Sub(time.UnixMilli(int64(first[0].Score)))
		late = append(late, fmt.Sprintf("%s: %d, by up to %s", t.Task, n, config.FormatDuration(by.Round(time.Second))))
	}
	if len(late) > 0 {
		return warn("see that a daemon serves the task and has room: keyfuse stats; raise engine.concurrency or start more", "late jobs: %s", some(late))
	}
	return ok("no job is late by more than %s", overdueAfter)
}

func (e *exam) dead(context.Context) Check {
	if e.err != nil {
		return blind("the dead letters", e.err, "mend what the checks above say")
	}
	var dead []string
	for _, t := range e.stats.Tasks {
		if t.Dead > 0 {
			dead = append(dead, fmt.Sprintf("%s: %d", t.Task, t.Dead))
		}
	}
	if len(dead) > 0 {
		return warn("keyfuse dead list says why; then keyfuse dead requeue, or delete", "dead letters: %s", some(dead))
	}
	return ok("none")
}

// some joins the first of many.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}
