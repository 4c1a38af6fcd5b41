package wire

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fired is one of the last firings of a definition.
type Fired struct {
	At     time.Time
	Reason string // threshold, timeout, manual
	Count  int64
	ID     string // of the counter
}

// lastFirings is how many are kept, see window.lua.
const lastFirings = 10

// Activity is what happens under a definition.
type Activity struct {
	Open  int64   // windows
	Fired []Fired // the last firings, the latest first
}

// Activities reads what happens under some definitions, in their order.
func (s *Store) Activities(ctx context.Context, ids []string) ([]Activity, error) {
	all := make([]Activity, len(ids))
	if len(ids) == 0 {
		return all, nil
	}
	open, lists := (*redis.SliceCmd)(nil), make([]*redis.StringSliceCmd, len(ids))
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		open = p.HMGet(ctx, s.Of("open"), ids...)
		for i, id := range ids {
			lists[i] = p.LRange(ctx, s.Of("firings:"+id), 0, -1)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range ids {
		all[i].Open = asInt(open.Val()[i])
		for _, line := range lists[i].Val() {
			if f := strings.SplitN(line, " ", 4); len(f) == 4 {
				all[i].Fired = append(all[i].Fired, Fired{msTime(asInt(f[0])), f[1], asInt(f[2]), f[3]})
			}
		}
	}
	return all, nil
}
