package bench

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

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
				report(b, measure(b, server, m, Size{}))
			}
		})
	}
}

// TestMeasurementsLeaveNothing runs each measurement in small.
func TestMeasurementsLeaveNothing(t *testing.T) {
	server := redistest.Start(t)
	small := Size{Burst: 500, Spread: 50, Over: 100 * time.Millisecond, Pending: 1000, Bare: 500, Handler: time.Microsecond, Idle: 10 * time.Millisecond, Hits: 1000}
	rdb := server.Client(t)
	for _, m := range All() {
		figures := measure(t, server, m, small)
		if len(figures) == 0 {
			t.Errorf("%s measured nothing", m.Name)
		}
		for _, f := range figures {
			if f.Name == "bare keys lost" && !f.Met {
				t.Errorf("%+v", f)
			}
		}
		keys, err := rdb.Keys(t.Context(), "*b*:??????:*").Result()
		if err != nil || len(keys) > 0 {
			t.Errorf("%s left %v, %v", m.Name, keys, err)
		}
	}
}

func measure(t testing.TB, server *redistest.Server, m Measurement, size Size) []Figure {
	t.Helper()
	bench, err := New(server.Client(t), size, slog.New(slog.DiscardHandler))
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
