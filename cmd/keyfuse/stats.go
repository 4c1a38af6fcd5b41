package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
)

// redisJSON is what stats tells of Redis.
type redisJSON struct {
	Version    string `json:"version,omitempty"`
	UsedMemory int64  `json:"used_memory,omitempty"` // bytes
	MaxMemory  int64  `json:"maxmemory,omitempty"`   // bytes; left out for no limit
	Clients    int64  `json:"clients,omitempty"`
	Uptime     int64  `json:"uptime,omitempty"` // seconds
	Keys       int64  `json:"keys"`
	Masters    int    `json:"masters,omitempty"` // of a Cluster that answered; all else is for them together
}

// stats is what the stats command tells.
type stats struct {
	overview
	Thresholds []thresholdJSON `json:"thresholds"`
	Redis      redisJSON       `json:"redis"`
}

func (a *app) statsCommand() *cobra.Command {
	return a.overviewCommand("stats", "Count jobs, and show tasks, nodes, thresholds and Redis", func(ctx context.Context, s *session, o *overview) error {
		thresholds, err := s.Thresholds(ctx)
		if err != nil && len(thresholds) == 0 {
			return err
		}
		// The others are told although one can't be read.
		return errors.Join(a.printStats(s, *o, thresholds, askRedis(ctx, s)), err)
	})
}

func (a *app) printStats(s *session, o overview, thresholds []client.ThresholdInfo, r redisJSON) error {
	if s.json {
		all := stats{o, []thresholdJSON{}, r}
		for _, t := range thresholds {
			all.Thresholds = append(all.Thresholds, thresholdOf(t))
		}
		return a.printJSON(all)
	}
	told := errors.Join(a.printTasks(o.Tasks), a.printf("\n"), a.printNodes(o.Nodes), a.printf("\n"))
	if len(thresholds) > 0 {
		told = errors.Join(told, a.printThresholds(thresholds), a.printf("\n"))
	}
	of := ""
	if r.Masters > 0 {
		of = " Cluster of " + count(r.Masters, "master")
	}
	return errors.Join(told, a.printf("Redis%s %s: %d keys, %s used, %d clients\n", of, printable(r.Version), r.Keys, bytesText(r.UsedMemory), r.Clients))
}

// askRedis asks what Redis tells of itself; a managed service may tell less. The
// masters of a Cluster are taken together.
func askRedis(ctx context.Context, s *session) redisJSON {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return askServer(ctx, s.rdb)
	}
	var mu sync.Mutex
	var sum redisJSON
	// A master that can't be reached is missing in the sum.
	_ = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		one := askServer(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		sum.add(one)
		return nil
	})
	return sum
}

func (r *redisJSON) add(o redisJSON) {
	r.Masters++
	r.Version = max(r.Version, o.Version)
	r.UsedMemory += o.UsedMemory
	r.MaxMemory += o.MaxMemory
	r.Clients += o.Clients
	r.Uptime = max(r.Uptime, o.Uptime)
	r.Keys += o.Keys
}

func askServer(ctx context.Context, rdb redis.UniversalClient) redisJSON {
	info := map[string]string{}
	text, err := rdb.Info(ctx).Result()
	if err == nil {
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[key] = value
			}
		}
	}
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(info[key], 10, 64) // not told: zero
		return n
	}
	keys, _ := rdb.DBSize(ctx).Result()
	return redisJSON{
		Version: info["redis_version"], UsedMemory: number("used_memory"), MaxMemory: number("maxmemory"),
		Clients: number("connected_clients"), Uptime: number("uptime_in_seconds"), Keys: keys,
	}
}

func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, suffix := float64(n), ""
	for _, suffix = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value /= unit; value < unit {
			break
		}
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + suffix
}
