package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// settler writes outcomes to Redis in groups: while one group is on its way the
// next one gathers. Writing is tried until it succeeds; outcomes that can't be
// written are kept, and hold back new claims.
type settler struct {
	*partition
	filled hint

	mu       sync.Mutex
	outcomes []outcome
	spare    []outcome // that loop has settled, for the next ones
	pending  int       // outcomes that are not in Redis yet, also those on their way
	finished bool
}

// maxUnsettled is how many outcomes may wait before claiming stops.
const maxUnsettled = 4 * wire.MaxSettle

// settleBytes is how long the payloads of runs may be together that one call
// copies: for a few ms of Redis's time.
const settleBytes = 1 << 20

// maxErrorLen bounds what is kept of a handler's error.
const maxErrorLen = 4 << 10

func newSettler(p *partition) *settler {
	return &settler{partition: p, filled: newHint()}
}

func (s *settler) add(o outcome) {
	s.mu.Lock()
	s.outcomes = append(s.outcomes, o)
	s.pending++
	s.mu.Unlock()
	s.filled.give()
}

// room is how many runs may be claimed as far as the settler is concerned.
func (s *settler) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maxUnsettled - s.pending
}

func (s *settler) clean() bool { return s.room() == maxUnsettled }

// finish lets loop end once everything is settled.
func (s *settler) finish() {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	s.filled.give()
}

func (s *settler) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.filled:
		}
		s.mu.Lock()
		outcomes, finished := s.outcomes, s.finished
		s.outcomes, s.spare = s.spare, nil
		s.mu.Unlock()
		if !s.settle(ctx, outcomes) || finished && s.clean() {
			return
		}
		clear(outcomes) // they hold payloads
		s.mu.Lock()
		s.spare = outcomes[:0]
		s.mu.Unlock()
	}
}

// settle writes outcomes, and says whether it could.
func (s *settler) settle(ctx context.Context, outcomes []outcome) bool {
	slices.SortStableFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(strings.Compare(a.run.Task, b.run.Task), cmp.Compare(a.kind(), b.kind()))
	})
	for len(outcomes) > 0 {
		n := groupLen(outcomes)
		group := outcomes[:n]
		outcomes = outcomes[n:]
		err := retry(ctx, func() error {
			err := s.write(ctx, group)
			s.note("settling", err)
			return err
		})
		if err != nil {
			return false
		}
		s.holding.settled(group)
		s.mu.Lock()
		before := s.pending
		s.pending -= n
		s.mu.Unlock()
		if before >= maxUnsettled {
			s.look.give()
		}
		for i := range group {
			s.tell(&group[i])
		}
	}
	return true
}

// groupLen is how many of the first outcomes one call may write: those of one
// task and kind. Records that stay are copied, and so must not be many if long.
func groupLen(outcomes []outcome) int {
	first, bytes := &outcomes[0], 0
	for n := range outcomes {
		o := &outcomes[n]
		if n == wire.MaxSettle || bytes > settleBytes || o.run.Task != first.run.Task || o.kind() != first.kind() {
			return n
		}
		if o.kind() == keeps {
			bytes += len(o.run.Payload)
		}
	}
	return len(outcomes)
}

type kind int

const (
	removes kind = iota // nothing of the run stays
	keeps
)

func (o *outcome) kind() kind {
	if o.Outcome == Done || o.Outcome == Discarded {
		return removes
	}
	return keeps
}

// write settles outcomes of one task and kind, and marks those whose lease was
// no longer held.
func (s *settler) write(ctx context.Context, group []outcome) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	task, sent := group[0].run.Task, time.Now()
	var lost []int
	var err error
	if group[0].kind() == removes {
		runs := make([]wire.Run, len(group))
		for i := range group {
			runs[i] = group[i].run
		}
		lost, err = s.store.Done(ctx, task, runs)
	} else {
		failures := make([]wire.Failure, len(group))
		for i := range group {
			failures[i] = group[i].failure()
		}
		lost, err = s.store.Fail(ctx, task, failures)
	}
	if err != nil {
		return err
	}
	for _, i := range lost {
		group[i].Outcome = Lost
	}
	if observe := s.cfg.Observer.Wrote; observe != nil {
		observe(len(group), time.Since(sent))
	}
	return nil
}

// settleTimeout is how long one call may take before it is made again.
const settleTimeout = 10 * time.Second

func (o *outcome) failure() wire.Failure {
	f := wire.Failure{Run: o.run, Verdict: wire.Retry, Delay: o.delay}
	switch o.Outcome {
	case Died:
		f.Verdict = wire.Bury
	case Returned:
		f.Verdict = wire.Return
	case Done, Retried, Discarded, Lost:
	}
	if o.Err != nil {
		f.Error = strings.ToValidUTF8(o.Err.Error(), "\uFFFD")
		if len(f.Error) > maxErrorLen {
			f.Error = strings.ToValidUTF8(f.Error[:maxErrorLen], "") + "…"
		}
	}
	return f
}
