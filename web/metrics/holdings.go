package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyfuse-io/keyfuse/client"
)

// Source is what is asked at each scrape; a client.Client is one.
type Source interface {
	Stats(ctx context.Context) (client.Stats, error)
	Horizons(ctx context.Context, bounds ...time.Duration) ([]client.Horizon, time.Time, error)
}

// askPatience is how long Redis has for a scrape; what it does not tell is left out.
const askPatience = 2 * time.Second

// holdings are what Redis holds.
type holdings struct {
	source Source
	label  func(task string) string

	jobs, overdue, oldest, paused, nodes, up *prometheus.Desc
}

func newHoldings(source Source, label func(string) string) *holdings {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &holdings{
		source: source, label: label,
		jobs:    desc("keyfuse_jobs", "Jobs that Redis holds, by state: pending, running, retrying, dead.", "task", "state"),
		overdue: desc("keyfuse_overdue_jobs", "Pending jobs, and runs that wait for an attempt, that are due already.", "task"),
		oldest:  desc("keyfuse_oldest_overdue_seconds", "For how long the first of them has been due; 0 if there is none.", "task"),
		paused:  desc("keyfuse_task_paused", "1 while the task is paused.", "task"),
		nodes:   desc("keyfuse_nodes", "Nodes that hold a lease."),
		up:      desc("keyfuse_redis_up", "1 if Redis answered this scrape."),
	}
}

// Describe is prometheus.Collector's.
func (h *holdings) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{h.jobs, h.overdue, h.oldest, h.paused, h.nodes, h.up} {
		all <- d
	}
}

// counts are the figures of a task, or of all that share a label.
type counts struct {
	states  [4]int64
	overdue int64
	oldest  time.Duration
	paused  bool
}

var states = [4]string{"pending", "running", "retrying", "dead"}

// Collect is prometheus.Collector's.
func (h *holdings) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	byTask, nodes, err := h.ask(ctx)
	if err != nil {
		gauge(h.up, 0)
		return
	}
	gauge(h.up, 1)
	gauge(h.nodes, float64(nodes))
	for task, c := range byTask {
		for i, state := range states {
			gauge(h.jobs, float64(c.states[i]), task, state)
		}
		gauge(h.overdue, float64(c.overdue), task)
		gauge(h.oldest, c.oldest.Seconds(), task)
		paused := 0.0
		if c.paused {
			paused = 1
		}
		gauge(h.paused, paused, task)
	}
}

func (h *holdings) ask(ctx context.Context) (map[string]counts, int, error) {
	stats, err := h.source.Stats(ctx)
	if err != nil {
		return nil, 0, err
	}
	horizons, now, err := h.source.Horizons(ctx)
	if err != nil {
		return nil, 0, err
	}
	byTask := make(map[string]counts)
	silent := make(map[string]bool) // paused, and without a label to say so under
	for _, t := range stats.Tasks {
		label := h.label(t.Task)
		c := byTask[label]
		for i, n := range [4]int64{t.Pending, t.Running, t.Retrying, t.Dead} {
			c.states[i] += n
		}
		if c.paused = t.Paused && label != other; label == other {
			silent[t.Task] = t.Paused
		}
		byTask[label] = c
	}
	for _, horizon := range horizons {
		label := h.label(horizon.Task)
		c := byTask[label]
		if horizon.Overdue > 0 && !silent[horizon.Task] {
			c.overdue += horizon.Overdue
			c.oldest = max(c.oldest, now.Sub(horizon.Since))
		}
		byTask[label] = c
	}
	return byTask, len(stats.Nodes), nil
}
