package wire

import (
	"context"
	"time"
)

// Changed is what a change to a job met. A firing at the same moment either
// came first, and the change met a running job, or comes after it.
type Changed int

// The outcomes; the numbers are cancel.lua's and move.lua's.
const (
	MetNothing Changed = iota
	ChangedIt
	MetRunning
	MetDead
	MetNoJob  // the class key is there but makes no job
	MetWindow // a window, whose end can't be moved, or that has fired already
)

// CancelResult is the outcome for one id.
type CancelResult struct {
	Outcome Changed
	RunID   string
}

// Cancel removes what has not started of jobs, and answers in their order.
func (s *Store) Cancel(ctx context.Context, ids ...string) ([]CancelResult, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	reply, err := s.run(ctx, s.cancel, args...)
	if err == nil {
		err = need(reply, 2*len(ids))
	}
	if err != nil {
		return nil, err
	}
	results := make([]CancelResult, len(ids))
	for i := range results {
		results[i] = CancelResult{Changed(asInt(reply[2*i])), asString(reply[2*i+1])}
	}
	return results, nil
}

// MoveResult is the outcome of Move.
type MoveResult struct {
	Outcome Changed
	Due     time.Time
	Task    string
	RunID   string // of the run that was met or, if it was retrying, moved; or that a window fired
	Count   int64  // of the window that was fired
}

// Move gives a waiting job another time. manual says that a person fired it: then
// an open window ends and fires as well.
func (s *Store) Move(ctx context.Context, id string, when When, manual bool) (MoveResult, error) {
	moved, _, err := s.MoveConfirmed(ctx, Confirm{}, id, when, manual)
	return moved, err
}

// MoveConfirmed is Move, and says how many replicas have the new time.
func (s *Store) MoveConfirmed(ctx context.Context, c Confirm, id string, when When, manual bool) (MoveResult, Confirmed, error) {
	how := "timer"
	if manual {
		how = "manual"
	}
	reply, confirmed, err := s.runConfirmed(ctx, c, s.move, id, when.arg(), how, s.Wake(s.db), newRunID())
	if err == nil {
		err = need(reply, 4)
	}
	if err != nil {
		return MoveResult{}, Confirmed{}, err
	}
	moved := MoveResult{Changed(asInt(reply[0])), msTime(asInt(reply[1])), asString(reply[2]), asString(reply[3]), 0}
	if len(reply) > 4 {
		moved.Count = asInt(reply[4])
	}
	return moved, confirmed, nil
}

// Requeue gives dead letters of a task all their attempts again, and returns
// how many of the run ids were dead letters.
func (s *Store) Requeue(ctx context.Context, task string, runIDs []string) (int, error) {
	return s.exhume(ctx, task, "requeue", runIDs)
}

// DeleteDead removes dead letters of a task for good.
func (s *Store) DeleteDead(ctx context.Context, task string, runIDs []string) (int, error) {
	return s.exhume(ctx, task, "delete", runIDs)
}

func (s *Store) exhume(ctx context.Context, task, how string, runIDs []string) (int, error) {
	args := []any{task, how, s.Wake(s.db)}
	for _, id := range runIDs {
		args = append(args, id)
	}
	reply, err := s.run(ctx, s.unbury, args...)
	if err != nil {
		return 0, err
	}
	return int(asInt(reply[0])), nil
}
