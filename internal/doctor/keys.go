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

// walk takes small steps, and rests after each as long as it took.
func (e *exam) walk(ctx context.Context) (*scan, error) {
	s := &scan{}
	end := time.Now().Add(e.opts.ScanTime)
	for cursor := uint64(0); ; {
		start := time.Now()
		keys, next, err := e.rdb.Scan(ctx, cursor, e.names.ClassPattern(e.opts.IDPrefix), scanStep).Result()
		if err != nil {
			return nil, err
		}
		if err := e.judge(ctx, s, keys); err != nil {
			return nil, err
		}
		if cursor = next; cursor == 0 {
			return s, nil
		}
		if s.cut = time.Now().After(end); s.cut {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Since(start)):
		}
	}
}

// judge looks at some class keys and their fuses.
func (e *exam) judge(ctx context.Context, s *scan, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	types := make([]*redis.StatusCmd, len(keys))
	heads := make([]*redis.StringCmd, len(keys))
	fuses := make([]*redis.DurationCmd, len(keys))
	_, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			id, _ := e.names.IDOfClass(key)
			types[i] = p.Type(ctx, key)
			heads[i] = p.GetRange(ctx, key, 0, wire.MaxTask) // one byte more than a name has
			fuses[i] = p.PTTL(ctx, e.names.Fuse(id))
		}
		return nil
	})
	// A key of another type answers WRONGTYPE, which is what is looked for.
	if _, answered := errors.AsType[redis.Error](err); err != nil && (!answered || denied(err)) {
		return err
	}
	for i, key := range keys {
		id, _ := e.names.IDOfClass(key)
		s.seen++
		switch kind, err := types[i].Result(); {
		case err != nil:
			return err
		case kind == "none": // it fired meanwhile
			continue
		case kind != "string":
			s.bad.add("%.80q is a %s", key, kind)
			continue
		}
		if wire.CheckID(id) != nil {
			s.bad.add("%.80q: no id of a job", key)
		} else if task, _, err := wire.ParseClass(heads[i].Val()); err != nil {
			s.bad.add("%.80q begins with no task name", key)
		} else if fuses[i].Val() == -1 {
			s.immortal.add("%q (%s)", id, task)
		}
	}
	return nil
}
