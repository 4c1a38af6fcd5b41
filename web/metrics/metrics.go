// Package metrics publishes for Prometheus what an engine tells its observer, and what
// Redis holds when it is asked.
//
// It promises bounded labels: tasks are those of the config file and those that jobs
// name, at most MaxTasks of them, and all others are one; every other label is one of a
// few words. Counting costs a run less than a microsecond, and asking Redis a few
// commands a task, whatever their jobs.
package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// MaxTasks is how many tasks have labels of their own.
const MaxTasks = 200

// other is the label of tasks beyond that.
const other = "(other)"

// Metrics are those of one engine. Make them with New.
type Metrics struct {
	registry *prometheus.Registry

	firings  *prometheus.CounterVec
	runs     *prometheus.CounterVec
	lateness prometheus.Histogram
	duration *prometheus.HistogramVec

	heard    prometheus.Counter
	gaps     prometheus.Counter
	canary   prometheus.Histogram
	degraded prometheus.Gauge

	claimed, wrote       prometheus.Histogram
	claimTook, wroteTook prometheus.Histogram
	errors               *prometheus.CounterVec

	mu    sync.Mutex
	tasks map[string]*task // by label
}

// task is what is counted of one: looking each of them up by its labels takes longer
// than counting.
type task struct {
	duration prometheus.Observer
	runs     map[engine.Outcome]prometheus.Counter
	firings  map[cause]prometheus.Counter
}

type cause struct{ reason, source string }

// seconds are the buckets of durations: from a millisecond to an hour. Where native
// histograms are scraped, those have finer ones.
var seconds = []float64{.001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// New makes metrics. source is what Redis holds; version is this program's; tasks have
// labels of their own whatever others there are.
func New(source Source, version string, tasks ...string) *Metrics {
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}
	}
	sizes := prometheus.ExponentialBuckets(1, 2, 9)
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		firings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keyfuse_firings_total", Help: "Attempts of runs that were settled, by why the job fired and how it was found.",
		}, []string{"task", "reason", "source"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keyfuse_runs_total", Help: "Attempts of runs that were settled, by what became of them.",
		}, []string{"task", "outcome"}),
		lateness:  prometheus.NewHistogram(histogram("keyfuse_lateness_seconds", "From the due time to the start of the first attempt, by Redis's clock.", seconds)),
		duration:  prometheus.NewHistogramVec(histogram("keyfuse_run_duration_seconds", "How long handlers took.", seconds), []string{"task"}),
		heard:     prometheus.NewCounter(prometheus.CounterOpts{Name: "keyfuse_events_heard_total", Help: "Events and wake-ups that were heard."}),
		gaps:      prometheus.NewCounter(prometheus.CounterOpts{Name: "keyfuse_subscription_gaps_total", Help: "Subscriptions that broke."}),
		canary:    prometheus.NewHistogram(histogram("keyfuse_canary_seconds", "From a heartbeat to hearing the event that it causes.", seconds)),
		degraded:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "keyfuse_degraded", Help: "1 while no events come."}),
		claimed:   prometheus.NewHistogram(histogram("keyfuse_claim_runs", "Runs a claim took, of those that took any.", sizes)),
		wrote:     prometheus.NewHistogram(histogram("keyfuse_settle_outcomes", "Outcomes that were written in one call.", sizes)),
		claimTook: prometheus.NewHistogram(histogram("keyfuse_claim_seconds", "How long Redis took to answer claims that took runs.", seconds)),
		wroteTook: prometheus.NewHistogram(histogram("keyfuse_settle_seconds", "How long Redis took to write outcomes.", seconds)),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keyfuse_redis_errors_total", Help: "Calls of Redis that failed, by what they were for and how.",
		}, []string{"doing", "kind"}),
		tasks: make(map[string]*task),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "keyfuse_build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.firings, m.runs, m.lateness, m.duration, m.heard, m.gaps, m.canary, m.degraded, m.claimed, m.wrote, m.claimTook, m.wroteTook,
		m.errors, build, newHoldings(source, m.label),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, name := range tasks {
		m.label(name)
	}
	return m
}

// Handler answers a scrape. What can't be told is left out, and the log says why.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	})
}

// label bounds how many tasks there are: whoever may write to Redis may name any.
func (m *Metrics) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	label, _ := m.of(name)
	return label
}

// of is a task and its label. The caller has the lock.
func (m *Metrics) of(name string) (string, *task) {
	if t, ok := m.tasks[name]; ok {
		return name, t
	}
	if len(m.tasks) >= MaxTasks || registry.CheckName(name) != nil {
		name = other
		if t, ok := m.tasks[name]; ok {
			return name, t
		}
	}
	t := &task{
		duration: m.duration.WithLabelValues(name), runs: make(map[engine.Outcome]prometheus.Counter), firings: make(map[cause]prometheus.Counter),
	}
	for _, outcome := range outcomes { // an increase is only seen of what was there before
		t.runs[outcome] = m.runs.WithLabelValues(name, string(outcome))
	}
	m.tasks[name] = t
	return name, t
}

// Observe adds what is counted here to what an observer does already; Ready and Swept
// are left alone.
func (m *Metrics) Observe(o engine.Observer) engine.Observer {
	settled, degraded := o.Settled, o.Degraded
	o.Settled = func(f engine.Firing) {
		m.settled(f)
		if settled != nil {
			settled(f)
		}
	}
	o.Degraded = func(why string) {
		m.degraded.Set(0)
		if why != "" {
			m.degraded.Set(1)
		}
		if degraded != nil {
			degraded(why)
		}
	}
	o.Claimed = func(runs int, took time.Duration) {
		m.claimed.Observe(float64(runs))
		m.claimTook.Observe(took.Seconds())
	}
	o.Wrote = func(outcomes int, took time.Duration) {
		m.wrote.Observe(float64(outcomes))
		m.wroteTook.Observe(took.Seconds())
	}
	o.Heard = m.heard.Inc
	o.Gap = m.gaps.Inc
	o.Canary = func(took time.Duration) { m.canary.Observe(took.Seconds()) }
	o.Failed = func(doing string, err error) { m.errors.WithLabelValues(doing, KindOf(err)).Inc() }
	return o
}

func (m *Metrics) settled(f engine.Firing) {
	firings, runs, duration := m.counters(f)
	firings.Inc()
	runs.Inc()
	if f.Job.Attempt <= 1 { // later attempts are late by what their waits are
		m.lateness.Observe(max(0, f.Late.Seconds()))
	}
	if f.Took > 0 {
		duration.Observe(f.Took.Seconds())
	}
}

func (m *Metrics) counters(f engine.Firing) (firings, runs prometheus.Counter, duration prometheus.Observer) {
	why := cause{word(string(f.Job.Reason), reasons), word(f.Source, sources)}
	m.mu.Lock()
	defer m.mu.Unlock()
	label, t := m.of(f.Job.Task)
	firings, ok := t.firings[why]
	if !ok {
		firings = m.firings.WithLabelValues(label, why.reason, why.source)
		t.firings[why] = firings
	}
	return firings, t.runs[f.Outcome], t.duration
}

var outcomes = []engine.Outcome{engine.Done, engine.Retried, engine.Died, engine.Discarded, engine.Returned, engine.Lost}

// What records in Redis say is anybody's: only words that are known are labels.
var (
	reasons = []string{"timer", "threshold", "timeout", "manual"}
	sources = []string{"index", "event", "sweep", "threshold", "manual"}
)

func word(s string, known []string) string {
	if slices.Contains(known, s) {
		return s
	}
	return "other"
}

// Other is the kind of an error that is neither Redis's nor of the way to it.
const Other = "other"

// KindOf is an error of Redis in one of a few words.
func KindOf(err error) string {
	_, isNet := errors.AsType[net.Error](err)
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case answered && strings.HasPrefix(err.Error(), "NOPERM"):
		return "forbidden"
	case answered && strings.HasPrefix(err.Error(), "OOM"):
		return "out of memory"
	case answered && strings.HasPrefix(err.Error(), "LOADING"):
		return "loading"
	case answered:
		return "refused"
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrClosed):
		return "connection"
	}
	return Other
}
