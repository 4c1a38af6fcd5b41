package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// scanStep is how many keys Redis looks at in one go: less than a millisecond.
const scanStep = 500

// finding counts the ids of one kind, with a few of them as examples.
type finding struct {
	n        int
	examples []string
}

func (f *finding) add(format string, args ...any) {
	if f.n++; len(f.examples) < 3 {
		f.examples = append(f.examples, fmt.Sprintf(format, args...))
	}
}

// scan is one walk over the class keys.
type scan struct {
	immortal, bad finding
	seen          int
	cut           bool // the time was over before the end
}

// keys walks over the class keys and judges them and their fuses.
func (e *exam) keys(ctx context.Context) []Check {
	s, err := e.walk(ctx)
	if err != nil {
		c := blind("the class keys", err, "let this user SCAN and read all keys of jobs")
		immortal, bad := c, c
		immortal.Name, bad.Name = "immortal fuses", "class keys"
		return []Check{immortal, bad}
	}
	partly := ""
	if s.cut {
		partly = fmt.Sprintf("; the look was cut off after %s and %d jobs", e.opts.ScanTime, s.seen)
	}
	immortal := ok("every fuse of %d jobs has a TTL%s", s.seen, partly)
	if s.immortal.n > 0 {
		immortal = warn("PEXPIRE <id> <ms> gives it a time; DEL class:<id> cancels it",
			"fuses without a TTL, whose jobs wait for ever: %d, as %s%s", s.immortal.n, some(s.immortal.examples), partly)
	}
	bad := ok("all %d make jobs%s", s.seen, partly)
	if s.bad.n > 0 {
		bad = warn("SET class:<id> \"<task> <payload>\", or DEL it", "keys that make no job: %d, as %s%s", s.bad.n, some(s.bad.examples), partly)
	}
	immortal.Name, bad.Name = "immortal fuses", "class keys"
	return []Check{immortal, bad}
}

// walk reads all class keys, or as many as there is time for.
func (e *exam) walk(ctx context.Context) (*scan, error) {
	s := &scan{}
	cursor := uint64(0)
	cut, err := e.paced(ctx, func() (bool, error) {
		keys, next, err := e.rdb.Scan(ctx, cursor, e.names.ClassPattern(e.opts.IDPrefix), scanStep).Result()
		if err != nil {
			return false, err
		}
		cursor = next
		return cursor == 0, e.judge(ctx, s, keys)
	})
	s.cut = cut
	return s, err
}

// paced takes small steps until one is the last, and rests after each as long as
// it took. It says whether the time was over before that.
func (e *exam) paced(ctx context.Context, step func() (last bool, err error)) (cut bool, err error) {
	for end := time.Now().Add(e.opts.ScanTime); ; {
		start := time.Now()
		last, err := step()
		if err != nil || last {
			return false, err
		}
		if time.Now().After(end) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(time.Since(start)):
		}
	}
}

// judge looks at some class keys and their fuses.
func (e *exam) judge(ctx context.Context, s *scan, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i], _ = e.names.IDOfClass(key)
	}
	glances, err := e.glance(ctx, ids, e.names.Class)
	if err != nil {
		return err
	}
	windows, err := e.rdb.HMGet(ctx, e.names.Of("windows"), ids...).Result()
	if err != nil {
		return err
	}
	for i, g := range glances {
		s.seen++
		task, _, err := wire.ParseClass(g.head)
		switch {
		case g.kind == "none": // it fired meanwhile
		case g.kind != "string":
			s.bad.add("%.80q is a %s", keys[i], g.kind)
		case wire.CheckID(ids[i]) != nil:
			s.bad.add("%.80q: no id of a job", keys[i])
		case err != nil:
			s.bad.add("%.80q begins with no task name", keys[i])
		case g.immortal && windows[i] == nil: // a window ends whatever its counter's TTL
			s.immortal.add("%q (%s)", ids[i], task)
		}
	}
	return nil
}

// glance is what a look at a key tells.
type glance struct {
	kind     string // "none" if it is not there
	head     string // how it begins, if it is a string
	immortal bool   // its id's fuse is there and has no TTL
}

// glance looks at a key of each id.
func (e *exam) glance(ctx context.Context, ids []string, key func(id string) string) ([]glance, error) {
	types := make([]*redis.StatusCmd, len(ids))
	heads := make([]*redis.StringCmd, len(ids))
	fuses := make([]*redis.DurationCmd, len(ids))
	_, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			types[i] = p.Type(ctx, key(id))
			heads[i] = p.GetRange(ctx, key(id), 0, wire.MaxTask) // one byte more than a name has
			fuses[i] = p.PTTL(ctx, e.names.Fuse(id))
		}
		return nil
	})
	// A key of another type answers WRONGTYPE, which is what is looked for.
	if _, answered := errors.AsType[redis.Error](err); err != nil && (!answered || denied(err)) {
		return nil, err
	}
	glances := make([]glance, len(ids))
	for i := range ids {
		if err := types[i].Err(); err != nil {
			return nil, err
		}
		glances[i] = glance{types[i].Val(), heads[i].Val(), fuses[i].Val() == -1}
	}
	return glances, nil
}
