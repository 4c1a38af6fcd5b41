package wire

import (
	"context"
	"errors"
	"time"
)

// ErrNodeGone means that a node's lease was given up: its runs are others' now,
// and it must go on under a new name.
var ErrNodeGone = errors.New("this node's lease has run out")

// ClaimRequest asks for runs.
type ClaimRequest struct {
	Node  string
	Seq   int64 // rises by one a call; the same again after a lost reply
	Runs  int   // at most, of all tasks
	Bytes int   // of records to stop after; at least one run is taken
	Tasks []Want

	MaxPayload int // bytes; a longer one is refused and stays where it is
}

// Want is how many runs of a task a node has room for.
type Want struct {
	Task string
	Runs int
}

// Claimed is the answer to a ClaimRequest.
type Claimed struct {
	Now     time.Time // Redis's clock
	Next    time.Time // when the next run that was asked for is due; zero if none is known
	Runs    []Run
	Broken  []Run  // whose records can't be read: only Task, RunID and Lease are known
	Refused int    // jobs that can't be run: no string, or payload over the limit
	Example string // the id of one of them
}

// Claim takes runs for a node: each is now leased to it.
func (s *Store) Claim(ctx context.Context, req ClaimRequest) (Claimed, error) {
	args := make([]any, 0, 6+2*len(req.Tasks))
	args = append(args, req.Node, req.Seq, req.Runs, req.Bytes, req.MaxPayload, s.Wake(s.db))
	for _, want := range req.Tasks {
		args = append(args, want.Task, want.Runs)
	}
	reply, err := s.run(ctx, s.claim, args...)
	if err == nil {
		err = need(reply, 5)
	}
	if err != nil {
		return Claimed{}, err
	}
	claimed := Claimed{
		Now:     clock(reply[0], reply[1]),
		Refused: int(asInt(reply[3])),
		Example: asString(reply[4]),
	}
	switch next := asInt(reply[2]); {
	case next == -2:
		return Claimed{}, ErrNodeGone
	case next >= 0:
		claimed.Next = msTime(next)
	}
	claimed.Runs = make([]Run, 0, (len(reply)-5)/3)
	for i := 5; i+2 < len(reply); i += 3 {
		run, err := parseRecord(asString(reply[i+2]))
		run.Task, run.Lease, run.State = asString(reply[i]), asString(reply[i+1]), Running
		run.RunID = RunIDOf(run.Lease)
		if err != nil {
			claimed.Broken = append(claimed.Broken, run)
			continue
		}
		claimed.Runs = append(claimed.Runs, run)
	}
	return claimed, nil
}
