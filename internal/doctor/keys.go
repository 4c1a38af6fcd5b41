package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// keys walks over the class keys of all servers and judges them and their fuses.
func (e *exam) keys(ctx context.Context) []Check {
	w, err := e.walk(func(s *server, w *walk) error { return s.classes(ctx, w) })
	if err != nil {
		c := blind("the class keys", err, "let this user SCAN and read all keys of jobs")
		return []Check{c.as("immortal fuses"), c.as("class keys")}
	}
	partly := e.partly(w, fmt.Sprintf(" and %d jobs", w.seen))
	immortal := ok("every fuse of %d jobs has a TTL%s", w.seen, partly)
	if w.immortal.n > 0 {
		immortal = warn("PEXPIRE <id> <ms> gives it a time; DEL class:<id> cancels it",
			"fuses without a TTL, whose jobs wait for ever: %s%s", w.immortal, partly)
	}
	return []Check{immortal.as("immortal fuses"), judgeClasses(w, partly).as("class keys")}
}

func (c Check) as(name string) Check {
	c.Name = name
	return c
}

func judgeClasses(w *walk, partly string) Check {
	var found []Check
	if w.bad.n > 0 {
		found = append(found, warn("SET class:<id> \"<task> <payload>\", or DEL it", "keys that make no job: %s", w.bad))
	}
	if w.untagged.n > 0 {
		found = append(found, warn("set it and its fuse again under the tag of its partition, and DEL it; or use keyfuse schedule",
			"keys without a partition's tag, whose jobs nobody runs in a cluster: %s", w.untagged))
	}
	if w.astray.n > 0 {
		found = append(found, warn("set it and its fuse again under the right tag, and DEL both under the other",
			"keys under the tag of another partition than their id's, whose jobs run, but are not found by their id: %s", w.astray))
	}
	if len(found) == 0 {
		return ok("all %d make jobs%s", w.seen, partly)
	}
	c := both(found...)
	c.Detail += partly
	return c
}

// classes reads all class keys of a server, or as many as there is time for.
func (s *server) classes(ctx context.Context, w *walk) error {
	pattern, cursor := wire.Names{}.ClassPattern(s.exam.opts.IDPrefix), uint64(0)
	if s.exam.space.IsCluster() {
		pattern = wire.Names{}.ClassPattern("") // of all partitions, and of none
	}
	return w.paced(ctx, func() (bool, error) {
		keys, next, err := s.rdb.Scan(ctx, cursor, pattern, scanStep).Result()
		if err != nil {
			return false, err
		}
		cursor = next
		return cursor == 0, s.judge(ctx, w, keys)
	})
}

// judge looks at some class keys and their fuses.
func (s *server) judge(ctx context.Context, w *walk, keys []string) error {
	var jobs []place
	for _, key := range keys {
		switch at := s.exam.placeOf(key); {
		case !strings.HasPrefix(at.id, s.exam.opts.IDPrefix):
		case at.store == nil:
			w.untagged.add("%.80q (it would be %.80q)", key, s.exam.space.Of(at.id).Class(at.id))
		default:
			jobs = append(jobs, at)
		}
	}
	glances, err := s.exam.glance(ctx, jobs, place.class)
	for i, g := range glances {
		w.seen++
		at, key := jobs[i], jobs[i].class()
		task, _, err := wire.ParseClass(g.head)
		switch {
		case g.kind == "none": // it fired meanwhile
			continue
		case g.kind != "string":
			w.bad.add("%.80q is a %s", key, g.kind)
		case wire.CheckID(at.id) != nil:
			w.bad.add("%.80q: no id of a job", key)
		case err != nil:
			w.bad.add("%.80q begins with no task name", key)
		case g.immortal && !g.window: // a window ends whatever its counter's TTL
			w.immortal.add("%q (%s)", at.id, task)
		}
		if right := s.exam.space.Of(at.id); right != at.store {
			w.astray.add("%.80q (it would be %.80q)", key, right.Class(at.id))
		}
	}
	return err
}

// placeOf is where the job of a class key is; nowhere if the key carries no
// partition's tag.
func (e *exam) placeOf(key string) place {
	for _, store := range e.space.All() {
		if id, ok := store.IDOfClass(key); ok {
			return place{store, id}
		}
	}
	id, _ := wire.Names{}.IDOfClass(key)
	return place{nil, id}
}
