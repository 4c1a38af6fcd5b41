package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// counters hears of counters that other clients INCR, if thresholds are
// defined. Hits that go through Keyfuse need none of this: their script does all.
type counters struct {
	dirty  hint // there are ids to look at
	reload hint // the definitions may have changed

	mu      sync.Mutex
	matcher *wire.Matcher
	version int64 // of the definitions that matcher knows
	ids     map[string]struct{}
	lost    bool    // ids were forgotten
	deaf    bool    // Redis does not let this user hear of counters
	changed *func() // called when the first definition comes or the last one goes

	// The sweep loop's own: when all counters were looked at last, and the flags.
	checked, flagged time.Time
}

// The time between two looks at all keys that patterns match: while events come,
// in case one was lost that nobody noticed, and while none do.
const (
	checkHealthy  = 10 * time.Minute
	checkDegraded = time.Minute
)

// maxDirty bounds the counters that wait to be looked at. Beyond it they are
// forgotten, and a check finds them.
const maxDirty = 100_000

func newCounters() *counters {
	return &counters{
		dirty: newHint(), reload: newHint(),
		matcher: wire.NewMatcher(nil), version: -1, ids: make(map[string]struct{}),
	}
}

// heard takes the id of a key in that was counted up. It must not wait.
func (c *counters) heard(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.matcher.Match(id):
	case len(c.ids) < maxDirty:
		c.ids[id] = struct{}{}
		c.dirty.give()
	default:
		c.lost = true
	}
}

func (c *counters) take() (ids []string, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.ids {
		ids = append(ids, id)
	}
	clear(c.ids)
	lost, c.lost = c.lost, false
	return ids, lost
}

func (c *counters) current() *wire.Matcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.matcher
}

// know notes which definitions there are.
func (c *counters) know(version int64, ids []string) {
	c.mu.Lock()
	matcher := wire.NewMatcher(ids)
	switched := matcher.Empty() != c.matcher.Empty()
	c.matcher, c.version = matcher, version
	c.deaf = c.deaf && !switched // then the node subscribes anew, and will see
	changed := c.changed
	c.mu.Unlock()
	if switched && changed != nil {
		(*changed)()
	}
}

// listening says whether counters are to be heard of.
func (c *counters) listening() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.matcher.Empty() && !c.deaf
}

// deafen notes that counters can't be heard of, until the first definition comes
// again.
func (c *counters) deafen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = true
}

// meet asks for the definitions if they are not of this version.
func (c *counters) meet(version int64) {
	c.mu.Lock()
	known := c.version
	c.mu.Unlock()
	if known != version {
		c.reload.give()
	}
}

// onChange says what to do when counters begin or cease to be of concern, until
// the function that it returns is called.
func (c *counters) onChange(f func()) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := &f
	c.changed = mine
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.changed == mine { // else another subscription has begun before this one could end
			c.changed = nil
		}
	}
}

// loadThresholds learns the definitions.
func (p *partition) loadThresholds(ctx context.Context) error {
	version, err := p.store.DefinedVersion(ctx)
	if err != nil {
		return err
	}
	ids, err := p.store.ThresholdIDs(ctx)
	if err != nil {
		return err
	}
	p.counters.know(version, ids)
	return nil
}

// countLoop looks at counters that were heard to change.
func (p *partition) countLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.counters.reload:
			err := p.loadThresholds(ctx)
			p.note("reading thresholds", err) // the next heartbeat asks again
		case <-p.counters.dirty:
			ids, lost := p.counters.take()
			err := p.touchAll(ctx, slices.Values(ids))
			p.note("counting", err)
			if lost || err != nil {
				p.swept.ask(p.redisNow()) // and the check that follows finds the rest
			}
		}
	}
}

// touchAll looks at counters, some at a time. After each call it leaves Redis alone
// for so long that all nodes together, which hear the same, take half of it at
// most: a counter that changes all the time is looked at as often as that allows.
// After an error it goes on with the next call, for it may be about one of the ids.
func (p *partition) touchAll(ctx context.Context, ids iter.Seq[string]) error {
	chunk := make([]string, 0, wire.MaxTouch)
	var failed error
	flush := func() bool {
		if len(chunk) == 0 {
			return true
		}
		start := time.Now()
		failed = errors.Join(failed, p.touch(ctx, chunk))
		chunk = chunk[:0]
		return pause(ctx, time.Since(start)*time.Duration(max(1, 2*p.nodes.Load()-1)))
	}
	for id := range ids {
		if chunk = append(chunk, id); len(chunk) == cap(chunk) && !flush() {
			return context.Cause(ctx)
		}
	}
	if !flush() {
		return context.Cause(ctx)
	}
	return failed
}

// touch looks at some counters. If Redis refuses that, it looks at them in halves,
// so that one with data that nobody expects does not keep the others waiting.
func (p *partition) touch(ctx context.Context, ids []string) error {
	fired, err := p.store.Touch(ctx, ids)
	if fired {
		p.look.give()
	}
	if _, refused := errors.AsType[redis.Error](err); !refused || len(ids) == 1 {
		return err
	}
	half := len(ids) / 2
	return errors.Join(p.touch(ctx, ids[:half]), p.touch(ctx, ids[half:]))
}

// check looks at counters whose events may have been lost: those with a
// definition of their own each time; and all that patterns match if something was
// missed, and now and then. The node that sweeps does it.
func (p *partition) check(ctx context.Context, since time.Time) error {
	c := p.counters
	matcher := c.current()
	if matcher.Empty() {
		return nil
	}
	failed := p.touchAll(ctx, slices.Values(matcher.IDs()))
	now := p.redisNow()
	every := checkHealthy
	if !c.listening() || p.cfg.Notifications == Off || p.live.reason() != "" {
		every = checkDegraded
	}
	if p.cfg.Notifications != Off && now.Sub(c.flagged) >= checkDegraded {
		c.flagged = now
		// An error is not new: it was said when the node subscribed.
		if added, err := p.ensureFlags(ctx); err == nil && added {
			since = now
		}
	}
	if now.Sub(c.checked) < every && !since.After(c.checked) || ctx.Err() != nil {
		return failed
	}
	for _, pattern := range matcher.Patterns() {
		failed = errors.Join(failed, p.checkPattern(ctx, matcher, pattern))
	}
	c.checked = now
	return failed
}

// checkPattern looks at all keys that a pattern matches, as gently as a sweep.
func (p *partition) checkPattern(ctx context.Context, matcher *wire.Matcher, pattern string) error {
	server, err := p.store.Server(ctx)
	for cursor := uint64(0); err == nil; {
		start := time.Now()
		var keys, ids []string
		keys, cursor, err = server.Scan(ctx, cursor, p.store.Glob(pattern), scanCount).Result()
		if err != nil {
			break
		}
		took := time.Since(start)
		for _, key := range keys {
			if id, ok := p.store.IDOfFuse(key); ok && matcher.Match(id) {
				ids = append(ids, id)
			}
		}
		err = p.touchAll(ctx, slices.Values(ids))
		if err != nil || cursor == 0 {
			break
		}
		if !pause(ctx, took) {
			return context.Cause(ctx)
		}
	}
	return err
}

// scanCount is how many keys Redis looks at in one go.
const scanCount = 2000
