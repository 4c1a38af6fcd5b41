package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// BenchmarkKeyfuse runs each measurement at its full size against a
// redis-server of its own that appends to disk, as redis.conf says. An
// iteration is one measurement: use -benchtime 1x.
func BenchmarkKeyfuse(b *testing.B) {
	server := redistest.Start(b, "--appendonly", "yes", "--appendfsync", "everysec")
	for _, m := range All() {
		b.Run(m.Name, func(b *testing.B) {
			for b.Loop() {
				report(b, measure(b, server.Client(b), m, Size{}))
			}
		})
	}
}

// BenchmarkCluster does the same on clusters of one, two and three masters. They
// share this machine: what they give on machines of their own, docs/operations.md
// reckons from how busy each is.
func BenchmarkCluster(b *testing.B) {
	for masters := range 3 {
		cluster := redistest.StartCluster(b, masters+1, 0, "--appendonly", "yes", "--appendfsync", "everysec")
		for _, m := range All() {
			b.Run(fmt.Sprint(masters+1, "/", m.Name), func(b *testing.B) {
				for b.Loop() {
					report(b, measure(b, cluster.Client(b), m, Size{}))
				}
			})
		}
	}
}

var small = Size{Burst: 500, Spread: 50, Over: 100 * time.Millisecond, Pending: 1000, Bare: 500, Handler: time.Microsecond, Idle: 10 * time.Millisecond, Hits: 1000}

// TestMeasurementsLeaveNothing runs each measurement in small.
func TestMeasurementsLeaveNothing(t *testing.T) {
	server := redistest.Start(t)
	leaveNothing(t, server.Client(t), server.Client(t))
}

func TestMeasurementsLeaveNothingInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	var servers []*redis.Client
	for _, master := range cluster.Masters() {
		servers = append(servers, master.Client(t))
	}
	leaveNothing(t, cluster.Client(t), servers...)
}

func leaveNothing(t *testing.T, rdb redis.UniversalClient, servers ...*redis.Client) {
	for _, m := range All() {
		figures := measure(t, rdb, m, small)
		if len(figures) == 0 {
			t.Errorf("%s measured nothing", m.Name)
		}
		for _, f := range figures {
			if f.Name == "bare keys lost" && !f.Met {
				t.Errorf("%+v", f)
			}
		}
		for _, server := range servers {
			keys, err := server.Keys(t.Context(), "*b:??????:*").Result()
			if err != nil || len(keys) > 0 {
				t.Errorf("%s left %d keys, %.200q, %v", m.Name, len(keys), keys, err)
			}
		}
	}
}

func measure(t testing.TB, rdb redis.UniversalClient, m Measurement, size Size) []Figure {
	t.Helper()
	bench, err := New(rdb, size, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	figures, err := bench.Measure(ctx, m)
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return figures
}

func report(b *testing.B, figures []Figure) {
	for _, f := range figures {
		b.ReportMetric(f.Value, strings.NewReplacer(" ", "-", ",", "").Replace(f.Name+" "+f.Unit))
	}
}
