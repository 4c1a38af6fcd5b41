package wire

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Horizon counts what a task has before it, by how soon that is due.
type Horizon struct {
	Task string
	// Within are how many pending jobs are due within each of the bounds that were
	// asked for, those that are due already included.
	Within []int64
	// Overdue are the pending jobs and the runs that wait for an attempt (also those of
	// reached thresholds, for their first) which are due already, the first one since
	// Since; zero if there is none.
	Overdue int64
	Since   time.Time
}

// Horizons counts, for the tasks that were ever indexed: 4 commands a task and 1 for each
// bound, O(log n). now is Redis's.
func (s *Store) Horizons(ctx context.Context, now time.Time, bounds []time.Duration) ([]Horizon, error) {
	tasks, err := s.Tasks(ctx)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	of := make([]asked, len(tasks))
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		upto := func(bound time.Duration) string { return strconv.FormatInt(now.Add(bound).UnixMilli(), 10) }
		for i, task := range tasks {
			due := s.OfTask("due", task)
			for _, key := range []string{due, s.OfTask("retrying", task)} {
				of[i].overdue = append(of[i].overdue, p.ZCount(ctx, key, "-inf", upto(0)))
				of[i].first = append(of[i].first, p.ZRangeWithScores(ctx, key, 0, 0))
			}
			for _, bound := range bounds {
				of[i].within = append(of[i].within, p.ZCount(ctx, due, "-inf", upto(bound)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]Horizon, len(tasks))
	for i, task := range tasks {
		all[i] = of[i].horizon(task)
	}
	return all, nil
}

// asked is what was asked of a task: of its due index and of its waiting runs, and then,
// of the index alone, for each bound.
type asked struct {
	overdue []*redis.IntCmd
	first   []*redis.ZSliceCmd
	within  []*redis.IntCmd
}

func (a asked) horizon(task string) Horizon {
	h := Horizon{Task: task, Within: make([]int64, len(a.within))}
	for k, n := range a.within {
		h.Within[k] = n.Val()
	}
	for i, n := range a.overdue {
		if first := a.first[i].Val(); n.Val() > 0 && len(first) > 0 {
			h.add(n.Val(), msTime(int64(first[0].Score)))
		}
	}
	return h
}

func (h *Horizon) add(overdue int64, since time.Time) {
	h.Overdue += overdue
	if overdue > 0 && (h.Since.IsZero() || since.Before(h.Since)) {
		h.Since = since
	}
}

// Horizons counts in all partitions together.
func (s *Space) Horizons(ctx context.Context, now time.Time, bounds []time.Duration) ([]Horizon, error) {
	lists, err := each(ctx, s, func(s *Store) ([]Horizon, error) { return s.Horizons(ctx, now, bounds) })
	if err != nil {
		return nil, err
	}
	sums := make(map[string]Horizon)
	for _, h := range slices.Concat(lists...) {
		sum, known := sums[h.Task]
		if !known {
			sums[h.Task] = h
			continue
		}
		for i, n := range h.Within {
			sum.Within[i] += n
		}
		sum.add(h.Overdue, h.Since)
		sums[h.Task] = sum
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b Horizon) int { return strings.Compare(a.Task, b.Task) }), nil
}
