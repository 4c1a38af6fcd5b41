package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Errors of thresholds.
var (
	ErrNoThreshold = errors.New("no such threshold")
	// ErrEqualPattern: two patterns with the same text before their * could both
	// match one key, and none of them would come first.
	ErrEqualPattern = errors.New("another pattern would match the same keys")
	// ErrPatterns: each pattern is compared with each id that has no window yet.
	ErrPatterns = errors.New("there are too many patterns")
)

// OnTimeout says what the end of a window does that has not reached its
// threshold.
type OnTimeout = wire.OnTimeout

// The choices.
const (
	TimeoutFires = wire.TimeoutFires // the job fires with the count that it has; the default
	TimeoutDrops = wire.TimeoutDrops // the hits are forgotten
)

// Mode says what comes after a firing.
type Mode = wire.Mode

// The modes.
const (
	Repeat = wire.Repeat // the next hit opens a new window; the default
	Once   = wire.Once   // until the window ends, hits are counted and fire nothing, and items are dropped
)

// Threshold is a definition: so many hits of a counter fire a job, or else the
// end of a window does that begins with the first hit.
type Threshold struct {
	// ID is the counter's Redis key: any client may INCR it. With one * in it,
	// not as the first byte, it is a pattern: * stands for any bytes, and each
	// key that matches has a window of its own. A definition of an id of its own
	// comes before patterns, the pattern with the longest text before its *
	// before others.
	ID string
	// Task names what to run. It need not be served by anybody yet.
	Task string
	// Payload is what the handler gets. If hits carry items, it gets a document
	// with both: see Hit.
	Payload []byte

	// Count is how many hits fire the job: 1 to 2^53 - 1.
	Count int64
	// Within is how long a window is open: 1 ms to MaxDelay. Fractions of a
	// millisecond are rounded up, here and below.
	Within    time.Duration
	OnTimeout OnTimeout // empty for TimeoutFires
	Mode      Mode      // empty for Repeat

	// Debounce, unless zero, is how long after the last hit the window ends, but
	// no later than MaxWait after the first one. MaxWait zero means Within, which
	// counts for nothing else then.
	Debounce, MaxWait time.Duration

	// MaxItems is how many items the hits of a window may carry, and MaxBytes
	// how many bytes they may take as JSON, with a comma each. A hit whose item
	// goes beyond that is refused. Zero means 1,000 and 256 KiB; at most 10,000
	// and 1 MiB.
	MaxItems, MaxBytes int
}

// Defined is what became of a definition: new, replaced, or the same as before.
type Defined = wire.Defined

// The outcomes of DefineThreshold.
const (
	DefinedNew      = wire.DefinedNew
	DefinedReplaced = wire.DefinedReplaced
	DefinedSame     = wire.DefinedSame
)

// DefineThreshold defines a threshold for good, in the place of the one that its
// ID had; doing so again changes nothing. A window that is open goes on by the
// new definition, but for its end and its payload, which it has already. Errors:
// ErrInvalid; ErrEqualPattern; ErrPatterns; or what Redis answered. If the
// connection makes the call again after a lost reply, the answer is DefinedSame.
func (c *Client) DefineThreshold(ctx context.Context, t Threshold) (Defined, error) {
	def, err := c.checkThreshold(t)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	outcome, other, err := c.space.Define(ctx, def)
	switch {
	case err != nil:
		return 0, err
	case outcome == wire.RefusedEqual:
		return 0, fmt.Errorf("%w: %q and %q; give one of them a longer text before its *, or remove the other", ErrEqualPattern, t.ID, other)
	case outcome == wire.RefusedMany:
		return 0, fmt.Errorf("%w: at most %d are allowed; remove some, or define ids of their own", ErrPatterns, wire.MaxPatterns)
	}
	return outcome, nil
}

func (c *Client) checkThreshold(t Threshold) (wire.Threshold, error) {
	def, err := wire.Threshold(t).Complete(MaxDelay)
	if err == nil {
		err = c.checkPrefix(t.ID)
	}
	if err == nil {
		err = c.checkPayload(t.Payload)
	}
	return def, err
}

// RemoveThreshold removes a definition, also one that can't be read. Windows that
// are open end as they would have; Cancel closes one. ErrNoThreshold if there is
// none of that id or pattern, also if the connection makes the call again after a
// lost reply.
func (c *Client) RemoveThreshold(ctx context.Context, id string) error {
	removed, err := c.space.Undefine(ctx, id)
	if err == nil && !removed {
		err = fmt.Errorf("%w: %q", ErrNoThreshold, id)
	}
	return err
}

// Window is an open window of a threshold.
type Window struct {
	Start, End time.Time // by Redis's clock
	Count      int64     // hits so far
	Threshold  int64     // how many fire it
	Items      int       // that it has collected
	Fired      bool      // in mode Once: it has fired, and lasts until its end
	Definition string    // the ID of its Threshold: the counter's own, or a pattern
}

// Fired is a firing of a threshold.
type Fired struct {
	At     time.Time
	Reason string // threshold, timeout or manual
	Count  int64  // hits of the window that fired
	ID     string // of the counter
}

// ThresholdInfo is a definition, with its defaults filled in, and what happens
// under it.
type ThresholdInfo struct {
	Threshold
	Open   int64   // windows; under a pattern there may be many
	Window *Window // the one that is open under ID; nil if none is, or ID is a pattern
	Fired  []Fired // the last ten firings, the latest first
}

// ErrBadDefinition is wrapped by what Thresholds says of a definition that can't be read.
var ErrBadDefinition = wire.ErrBadDefinition

// Thresholds are all definitions, in the order of their ids. If some can't be
// read, the others come with an error that joins one for each of these.
func (c *Client) Thresholds(ctx context.Context) ([]ThresholdInfo, error) {
	defs, bad := c.space.Thresholds(ctx)
	all, err := c.describe(ctx, defs)
	return all, errors.Join(bad, err)
}

// Threshold is one definition. ErrNoThreshold if there is none of that id or
// pattern.
func (c *Client) Threshold(ctx context.Context, id string) (ThresholdInfo, error) {
	def, err := c.space.Of(id).Threshold(ctx, id)
	if err == nil && def == nil {
		err = fmt.Errorf("%w: %q", ErrNoThreshold, id)
	}
	if err != nil {
		return ThresholdInfo{}, err
	}
	all, err := c.describe(ctx, []wire.Threshold{*def})
	if err != nil {
		return ThresholdInfo{}, err
	}
	return all[0], nil
}

// describe says what happens under some definitions.
func (c *Client) describe(ctx context.Context, defs []wire.Threshold) ([]ThresholdInfo, error) {
	ids, all := make([]string, len(defs)), make([]ThresholdInfo, len(defs))
	for i, def := range defs {
		ids[i], all[i].Threshold = def.ID, Threshold(def)
	}
	activities, err := c.space.Activities(ctx, ids)
	if err != nil {
		return nil, err
	}
	windows := make([]*wire.Window, len(ids))
	_, err = wire.Group(ids, c.space.Of, len(ids), func(store *wire.Store, ids []string, at []int) (int, error) {
		open, err := store.Windows(ctx, ids)
		for i, w := range open {
			windows[at[i]] = w
		}
		return 0, err
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Open = activities[i].Open
		if !wire.IsPattern(ids[i]) { // a key may be named like a pattern
			all[i].Window = (*Window)(windows[i])
		}
		for _, fired := range activities[i].Fired {
			all[i].Fired = append(all[i].Fired, Fired(fired))
		}
	}
	return all, nil
}
