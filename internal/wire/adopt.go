package wire

import (
	"context"
	"time"
)

// Finder is who found a bare job.
type Finder string

// The finders.
const (
	ByEvent Finder = "event" // its fuse was heard to expire: due now
	BySweep Finder = "sweep" // its class key was seen
)

// Adopted is the answer of Adopt.
type Adopted struct {
	Indexed  int    // are in the due index from now on
	Known    int    // are in the due index already
	Immortal int    // have a fuse without TTL, and wait for ever
	Refused  int    // have a class key that makes no job
	Example  string // the id of one that was refused
	Why      string // and why
}

// MaxAdopt is how many ids one call may take: few enough for a script of a ms or so.
const MaxAdopt = 200

// Adopt indexes the bare jobs among some ids. An orphan, whose fuse is gone, is
// due after the grace if the sweep found it: its fuse may be about to be set.
func (s *Store) Adopt(ctx context.Context, by Finder, grace time.Duration, maxPayload int, ids []string) (Adopted, error) {
	args := make([]any, 0, 4+len(ids))
	args = append(args, string(by), ceilMS(grace), maxPayload, s.Wake(s.db))
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := s.run(ctx, s.adopt, args...)
	if err != nil {
		return Adopted{}, err
	}
	return readAdopted(reply)
}

func readAdopted(reply []any) (Adopted, error) {
	if err := need(reply, 6); err != nil {
		return Adopted{}, err
	}
	return Adopted{
		Indexed: int(asInt(reply[0])), Known: int(asInt(reply[1])),
		Immortal: int(asInt(reply[2])), Refused: int(asInt(reply[3])),
		Example: asString(reply[4]), Why: asString(reply[5]),
	}, nil
}

// Add counts what another call found as well.
func (a *Adopted) Add(b Adopted) {
	a.Indexed += b.Indexed
	a.Known += b.Known
	a.Immortal += b.Immortal
	if a.Refused += b.Refused; b.Refused > 0 {
		a.Example, a.Why = b.Example, b.Why
	}
}
