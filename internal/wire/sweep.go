package wire

import (
	"context"
	"time"
)

// SweepStep asks for a step of a sweep.
type SweepStep struct {
	Node   string
	Cursor string    // empty to begin
	Since  time.Time // beginning: the last sweep will do if it began since then
	Prefix string    // of ids; others are left alone

	Cost  time.Duration // of the steps so far
	Wait  time.Duration // until the next sweep, at least
	Share int           // and at least so many times what this one cost

	Grace      time.Duration // as of Adopt
	MaxPayload int           // bytes
}

// Swept is the answer to a SweepStep.
type Swept struct {
	Adopted
	Mine   bool   // false: this sweep is not wanted, or another node is at it
	Cursor string // of the next step; empty after the last one
}

// Sweep looks at the class keys of some hundred keys, and indexes the bare jobs
// among them.
func (s *Store) Sweep(ctx context.Context, step SweepStep) (Swept, error) {
	since := int64(0)
	if !step.Since.IsZero() {
		since = step.Since.UnixMilli()
	}
	reply, err := s.run(ctx, s.sweep, string(BySweep), ceilMS(step.Grace), step.MaxPayload, s.Wake(s.db),
		step.Node, step.Cursor, since, s.ClassPattern(step.Prefix), ceilMS(step.Cost), ceilMS(step.Wait), step.Share)
	if err == nil {
		err = need(reply, 2)
	}
	if err != nil || asInt(reply[0]) == 0 {
		return Swept{}, err
	}
	swept := Swept{Mine: true, Cursor: asString(reply[1])}
	if asInt(reply[0]) == 2 {
		swept.Cursor = ""
	}
	swept.Adopted, err = readAdopted(reply[2:])
	return swept, err
}
