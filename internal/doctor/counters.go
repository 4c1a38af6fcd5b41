package doctor

import (
	"context"
	"strconv"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// counters looks at the keys that count: those with a definition of their own,
// and those of open windows. Only a scan of all keys would find the others that
// a pattern matches.
func (e *exam) counters(ctx context.Context) Check {
	if e.err != nil {
		return blind("the counters", e.err, "mend what the checks above say")
	}
	own := make(map[place]bool)
	for _, def := range e.thresholds {
		if !wire.IsPattern(def.ID) {
			own[place{e.space.Of(def.ID), def.ID}] = true
		}
	}
	w, err := e.walk(func(s *server, w *walk) error { return s.tally(ctx, w, own) })
	if err != nil {
		return blind("the counters", err, "let this user read all keys of jobs")
	}
	partly := e.partly(w, "")
	switch {
	case w.bad.n > 0:
		return fail("DEL the key, or define the threshold under another id", "counters whose hits are refused: %s%s", w.bad, partly)
	case w.immortal.n > 0:
		return e.untouched(w.immortal, partly)
	}
	return ok("%d count%s", w.seen, partly)
}

// untouched judges counters without a TTL: other clients have counted in them
// since a node looked the last time, or no node looks.
func (e *exam) untouched(found finding, partly string) Check {
	const what = "counters without a TTL, whose hits no node has seen yet: %s%s"
	if len(e.daemons) == 0 {
		return warn("keyfuse serve", what+"; the next daemon looks at them when it starts", found, partly)
	}
	return warn("run the doctor again: they have one within a minute, or see the checks of permissions and notifications, and the nodes' logs",
		what, found, partly)
}

// tally looks at the counters that a server has.
func (s *server) tally(ctx context.Context, w *walk, own map[place]bool) error {
	var mine []place
	for at := range own {
		if s.exam.holder(at.store) == s {
			mine = append(mine, at)
		}
	}
	err := w.paced(ctx, func() (bool, error) {
		step := mine[:min(scanStep, len(mine))]
		mine = mine[len(step):]
		return len(mine) == 0, s.weigh(ctx, w, step)
	})
	for _, store := range s.stores {
		cursor := uint64(0)
		if err != nil || w.cut {
			return err
		}
		err = w.paced(ctx, func() (bool, error) {
			pairs, next, err := s.exam.rdb.HScan(ctx, store.Of("windows"), cursor, "*", scanStep).Result()
			if err != nil {
				return false, err
			}
			var step []place
			for i := 0; i < len(pairs); i += 2 {
				if at := (place{store, pairs[i]}); !own[at] {
					step = append(step, at)
				}
			}
			cursor = next
			return cursor == 0, s.weigh(ctx, w, step)
		})
	}
	return err
}

// weigh looks at some counters. One that is not there has not counted yet.
func (s *server) weigh(ctx context.Context, w *walk, counters []place) error {
	glances, err := s.exam.glance(ctx, counters, place.fuse)
	for i, g := range glances {
		_, noInteger := strconv.ParseInt(g.head, 10, 64)
		switch id := counters[i].id; {
		case g.kind == "none":
			continue
		case g.kind != "string":
			w.bad.add("%q is a %s", id, g.kind)
		case noInteger != nil:
			w.bad.add("%q is no integer", id)
		case g.immortal:
			w.immortal.add("%q (%s)", id, g.head)
		}
		w.seen++
	}
	return err
}
