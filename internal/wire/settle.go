package wire

import (
	"context"
	"time"
)

// Verdict is what becomes of a run that did not succeed.
type Verdict string

// The verdicts.
const (
	Retry  Verdict = "retry"  // again after a delay
	Bury   Verdict = "dead"   // to the dead letters
	Return Verdict = "return" // given back, as if this attempt had never been
)

// Failure is a run to settle that did not succeed.
type Failure struct {
	Run     Run
	Verdict Verdict
	Delay   time.Duration // of a retry
	Error   string
}

// MaxSettle is how many runs one call may settle.
const MaxSettle = 500

// Done removes runs of one task that succeeded. It returns the positions of
// those whose lease was lost, for which nothing was changed.
func (s *Store) Done(ctx context.Context, task string, runs []Run) ([]int, error) {
	lost := []int{}
	for from, upto := 0, 0; from < len(runs); from = upto {
		node := runs[from].Node() // the same in nearly all calls
		args := make([]any, 0, 2+len(runs)-from)
		args = append(args, task, node)
		for ; upto < len(runs) && runs[upto].Node() == node; upto++ {
			args = append(args, runs[upto].Lease)
		}
		some, err := positions(s.run(ctx, s.done, args...))
		if err != nil {
			return nil, err
		}
		for _, i := range some {
			lost = append(lost, from+i)
		}
	}
	return lost, nil
}

// Fail settles runs of one task that did not succeed, and returns what Done does.
func (s *Store) Fail(ctx context.Context, task string, failures []Failure) ([]int, error) {
	args := make([]any, 0, 2+4*len(failures))
	args = append(args, task, s.Wake(s.db))
	for i := range failures {
		f := &failures[i]
		args = append(args, f.Run.Lease, string(f.Verdict), ceilMS(f.Delay), f.Error)
	}
	return positions(s.run(ctx, s.fail, args...))
}

func positions(reply []any, err error) ([]int, error) {
	if err != nil {
		return nil, err
	}
	lost := make([]int, len(reply))
	for i, v := range reply {
		lost[i] = int(asInt(v))
	}
	return lost, nil
}
