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

const mostExamples = 3

func (f *finding) add(format string, args ...any) {
	if f.n++; len(f.examples) < mostExamples {
		f.examples = append(f.examples, fmt.Sprintf(format, args...))
	}
}

func (f *finding) addAll(g finding) {
	f.n += g.n
	f.examples = append(f.examples, g.examples[:min(len(g.examples), mostExamples-len(f.examples))]...)
}

// String gives the number with the examples.
func (f finding) String() string { return fmt.Sprintf("%d, as %s", f.n, some(f.examples)) }

// walk is a look at many keys of one server, and what was seen.
type walk struct {
	end      time.Time // when the time is over
	bad      finding   // no job, or no counter
	immortal finding   // without a TTL
	untagged finding   // in a cluster, but in no partition
	astray   finding   // in another partition than the id's
	seen     int
	cut      bool // the time was over before the end
}

// walk looks at keys on all servers at the same time, and adds up what was seen.
func (e *exam) walk(look func(s *server, w *walk) error) (*walk, error) {
	end := time.Now().Add(e.opts.ScanTime)
	walks, errs := answers(e.servers, func(s *server) (*walk, error) {
		w := &walk{end: end}
		return w, look(s, w)
	})
	sum := &walk{}
	for _, w := range walks {
		sum.bad.addAll(w.bad)
		sum.immortal.addAll(w.immortal)
		sum.untagged.addAll(w.untagged)
		sum.astray.addAll(w.astray)
		sum.seen += w.seen
		sum.cut = sum.cut || w.cut
	}
	return sum, errors.Join(errs...)
}

// partly says that a walk did not come to the end, if so.
func (e *exam) partly(w *walk, andAfter string) string {
	if !w.cut {
		return ""
	}
	return fmt.Sprintf("; the look was cut off after %s%s", e.opts.ScanTime, andAfter)
}

// paced takes small steps until one is the last, and rests after each as long as
// it took. If the time is over before that, the walk is cut.
func (w *walk) paced(ctx context.Context, step func() (last bool, err error)) error {
	for {
		start := time.Now()
		last, err := step()
		if err != nil || last {
			return err
		}
		if time.Now().After(w.end) {
			w.cut = true
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Since(start)):
		}
	}
}

// place is where an id's keys are.
type place struct {
	store *wire.Store
	id    string
}

func (p place) fuse() string  { return p.store.Fuse(p.id) }
func (p place) class() string { return p.store.Class(p.id) }

// glance is what a look at a key tells.
type glance struct {
	kind     string // "none" if it is not there
	head     string // how it begins, if it is a string
	immortal bool   // its id's fuse is there and has no TTL
	window   bool   // one is open under its id
}

// glance looks at a key of each of some ids.
func (e *exam) glance(ctx context.Context, places []place, key func(place) string) ([]glance, error) {
	if len(places) == 0 {
		return nil, nil
	}
	types := make([]*redis.StatusCmd, len(places))
	heads := make([]*redis.StringCmd, len(places))
	fuses := make([]*redis.DurationCmd, len(places))
	windows := make([]*redis.BoolCmd, len(places))
	_, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, at := range places {
			types[i] = p.Type(ctx, key(at))
			heads[i] = p.GetRange(ctx, key(at), 0, wire.MaxTask) // one byte more than a name has
			fuses[i] = p.PTTL(ctx, at.fuse())
			windows[i] = p.HExists(ctx, at.store.Of("windows"), at.id)
		}
		return nil
	})
	// A key of another type answers WRONGTYPE, which is what is looked for.
	if _, answered := errors.AsType[redis.Error](err); err != nil && (!answered || denied(err)) {
		return nil, err
	}
	glances := make([]glance, len(places))
	for i := range places {
		if err := types[i].Err(); err != nil {
			return nil, err
		}
		glances[i] = glance{types[i].Val(), heads[i].Val(), fuses[i].Val() == -1, windows[i].Val()}
	}
	return glances, nil
}
