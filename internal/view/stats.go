package view

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// Task is a task with how many jobs it has.
type Task struct {
	Task     string   `json:"task"`
	Pending  int64    `json:"pending"`
	Running  int64    `json:"running"`
	Retrying int64    `json:"retrying"`
	Dead     int64    `json:"dead"`
	Paused   bool     `json:"paused"`
	Nodes    []string `json:"nodes"` // that serve it
}

// Node is a daemon.
type Node struct {
	Name     string   `json:"name"`
	Alive    bool     `json:"alive"` // its lease has not run out
	Until    string   `json:"until"` // the end of its lease
	Host     string   `json:"host,omitempty"`
	PID      int      `json:"pid,omitempty"`
	Version  string   `json:"version,omitempty"`
	Started  string   `json:"started,omitempty"`
	Tasks    []string `json:"tasks"`
	Degraded string   `json:"degraded,omitempty"` // why it does not hear events
}

// Overview is all tasks and nodes.
type Overview struct {
	Tasks []Task `json:"tasks"` // in the order of their names: those that jobs use or nodes serve
	Nodes []Node `json:"nodes"`
}

// Stats is an overview with all else that there is to know at a glance.
type Stats struct {
	Overview
	Thresholds []Threshold `json:"thresholds"`
	Redis      Redis       `json:"redis"`
}

// OverviewOf is an overview of some counts at a moment of Redis's clock.
func OverviewOf(stats client.Stats, now time.Time) Overview {
	o := Overview{Tasks: []Task{}, Nodes: []Node{}}
	for _, n := range stats.Nodes {
		o.Nodes = append(o.Nodes, Node{
			Name: n.Name, Alive: n.Until.After(now), Until: Stamp(n.Until), Host: n.Host, PID: n.PID,
			Version: n.Version, Started: Stamp(n.Started), Tasks: append([]string{}, n.Tasks...), Degraded: n.Degraded,
		})
	}
	for _, t := range stats.Tasks {
		o.Tasks = append(o.Tasks, Task{t.Task, t.Pending, t.Running, t.Retrying, t.Dead, t.Paused, []string{}})
	}
	o.serve()
	return o
}

// serve notes who serves which task, and adds tasks that no job has used yet.
func (o *Overview) serve() {
	for _, n := range o.Nodes {
		for _, task := range n.Tasks {
			at, found := slices.BinarySearchFunc(o.Tasks, task, func(t Task, name string) int { return strings.Compare(t.Task, name) })
			if !found {
				o.Tasks = slices.Insert(o.Tasks, at, Task{Task: task, Nodes: []string{}})
			}
			if n.Alive {
				o.Tasks[at].Nodes = append(o.Tasks[at].Nodes, n.Name)
			}
		}
	}
}

// Redis is what Redis tells of itself; a managed service may tell less.
type Redis struct {
	Version    string `json:"version,omitempty"`
	UsedMemory int64  `json:"used_memory,omitempty"` // bytes
	MaxMemory  int64  `json:"maxmemory,omitempty"`   // bytes; left out for no limit
	Clients    int64  `json:"clients,omitempty"`
	Uptime     int64  `json:"uptime,omitempty"` // seconds
	Keys       int64  `json:"keys"`
	Masters    int    `json:"masters,omitempty"` // of a Cluster that answered; all else is for them together
}

// AskRedis asks it. The masters of a Cluster are taken together, and one that can't be
// reached is missing in the sum; so is, of a single Redis, what it does not tell.
func AskRedis(ctx context.Context, rdb redis.UniversalClient) Redis {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return askServer(ctx, rdb)
	}
	var mu sync.Mutex
	var sum Redis
	_ = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		one := askServer(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		sum.add(one)
		return nil
	})
	return sum
}

func (r *Redis) add(o Redis) {
	r.Masters++
	r.Version = max(r.Version, o.Version)
	r.UsedMemory += o.UsedMemory
	r.MaxMemory += o.MaxMemory
	r.Clients += o.Clients
	r.Uptime = max(r.Uptime, o.Uptime)
	r.Keys += o.Keys
}

func askServer(ctx context.Context, rdb redis.UniversalClient) Redis {
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
	return Redis{
		Version: info["redis_version"], UsedMemory: number("used_memory"), MaxMemory: number("maxmemory"),
		Clients: number("connected_clients"), Uptime: number("uptime_in_seconds"), Keys: keys,
	}
}
