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

// Horizon counts a task's pending jobs by how soon they are due.
type Horizon struct {
	Task string
	// Within are how many are due within each of the bounds that were asked for,
	// those that are due already included.
	Within []int64
	// First is when the first one is due; zero if there is none.
	First time.Time
}

// Horizons counts, for the tasks that were ever indexed: 1 command for each bound and
// task, O(log n). now is Redis's.
func (s *Store) Horizons(ctx context.Context, now time.Time, bounds []time.Duration) ([]Horizon, error) {
	tasks, err := s.Tasks(ctx)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	firsts, counts := make([]*redis.ZSliceCmd, len(tasks)), make([][]*redis.IntCmd, len(tasks))
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, task := range tasks {
			key := s.OfTask("due", task)
			firsts[i] = p.ZRangeWithScores(ctx, key, 0, 0)
			for _, bound := range bounds {
				counts[i] = append(counts[i], p.ZCount(ctx, key, "-inf", strconv.FormatInt(now.Add(bound).UnixMilli(), 10)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]Horizon, len(tasks))
	for i, task := range tasks {
		all[i] = Horizon{Task: task, Within: make([]int64, len(bounds))}
		for k := range bounds {
			all[i].Within[k] = counts[i][k].Val()
		}
		if first := firsts[i].Val(); len(first) > 0 {
			all[i].First = msTime(int64(first[0].Score))
		}
	}
	return all, nil
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
		if sum.First.IsZero() || !h.First.IsZero() && h.First.Before(sum.First) {
			sum.First = h.First
		}
		sums[h.Task] = sum
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b Horizon) int { return strings.Compare(a.Task, b.Task) }), nil
}
