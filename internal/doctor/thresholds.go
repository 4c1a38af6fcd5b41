package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// readThresholds reads the definitions, for the checks that go by them.
func (e *exam) readThresholds(ctx context.Context, c *client.Client) {
	var err error
	e.thresholds, err = c.Thresholds(ctx)
	if errors.Is(err, wire.ErrBadDefinition) {
		e.unreadable = err
	} else {
		e.err = cmp.Or(e.err, err)
	}
}

// definitions finds thresholds that can't be read, or whose task nobody serves.
func (e *exam) definitions(context.Context) Check {
	switch {
	case e.err != nil:
		return blind("the thresholds", e.err, "mend what the checks above say")
	case e.unreadable != nil:
		return fail("keyfuse threshold remove ID, and define it again", "hits of these fail: %s", some(strings.Split(e.unreadable.Error(), "\n")))
	}
	var unserved []string
	for _, t := range e.thresholds {
		if !e.served(t.Task) {
			unserved = append(unserved, fmt.Sprintf("%s (for %q)", t.Task, t.ID))
		}
	}
	if len(unserved) > 0 {
		return warn("start a daemon that serves them, or define the threshold again with the right name: keyfuse threshold",
			"no live node serves %s: what fires waits", some(unserved))
	}
	return ok("%d defined", len(e.thresholds))
}

// tally is what was found wrong with counters.
type tally struct {
	noInteger, immortal finding
	seen                int
}

// counters looks at the keys that count: those with a definition of their own,
// and those of open windows. Only a scan of all keys would find the others that
// a pattern matches.
func (e *exam) counters(ctx context.Context) Check {
	if e.err != nil {
		return blind("the counters", e.err, "mend what the checks above say")
	}
	var t tally
	cut, err := e.tally(ctx, &t)
	if err != nil {
		return blind("the counters", err, "let this user read all keys of jobs")
	}
	partly := ""
	if cut {
		partly = fmt.Sprintf("; the look was cut off after %s", e.opts.ScanTime)
	}
	switch {
	case t.noInteger.n > 0:
		return fail("DEL the key, or define the threshold under another id",
			"counters whose hits are refused: %d, as %s%s", t.noInteger.n, some(t.noInteger.examples), partly)
	case t.immortal.n > 0:
		return e.untouched(t.immortal, partly)
	}
	return ok("%d count%s", t.seen, partly)
}

// untouched judges counters without a TTL: other clients have counted in them
// since a node looked the last time, or no node looks.
func (e *exam) untouched(found finding, partly string) Check {
	what := fmt.Sprintf("counters without a TTL, whose hits no node has seen yet: %d, as %s%s", found.n, some(found.examples), partly)
	if nodes, _ := e.alive(); len(nodes) == 0 {
		return warn("keyfuse serve", "%s; the next daemon looks at them when it starts", what)
	}
	return warn("run the doctor again: they have one within a minute, or see the checks of permissions and notifications, and the nodes' logs", "%s", what)
}

func (e *exam) tally(ctx context.Context, t *tally) (cut bool, err error) {
	own := make(map[string]struct{})
	for _, def := range e.thresholds {
		if !wire.IsPattern(def.ID) {
			own[def.ID] = struct{}{}
		}
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(own)), scanStep) {
		if err := e.weigh(ctx, t, ids); err != nil {
			return false, err
		}
	}
	cursor := uint64(0)
	return e.paced(ctx, func() (bool, error) {
		pairs, next, err := e.rdb.HScan(ctx, e.names.Of("windows"), cursor, "*", scanStep).Result()
		if err != nil {
			return false, err
		}
		var ids []string
		for i := 0; i < len(pairs); i += 2 {
			if _, seen := own[pairs[i]]; !seen {
				ids = append(ids, pairs[i])
			}
		}
		cursor = next
		return cursor == 0, e.weigh(ctx, t, ids)
	})
}

// weigh looks at some counters. One that is not there has not counted yet.
func (e *exam) weigh(ctx context.Context, t *tally, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	glances, err := e.glance(ctx, ids, e.names.Fuse)
	if err != nil {
		return err
	}
	for i, g := range glances {
		_, noInteger := strconv.ParseInt(g.head, 10, 64)
		switch {
		case g.kind == "none":
			continue
		case g.kind != "string":
			t.noInteger.add("%q is a %s", ids[i], g.kind)
		case noInteger != nil:
			t.noInteger.add("%q is no integer", ids[i])
		case g.immortal:
			t.immortal.add("%q (%s)", ids[i], g.head)
		}
		t.seen++
	}
	return nil
}
