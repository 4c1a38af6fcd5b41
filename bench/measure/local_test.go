package measure

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// timers is a way that lives in this process: a timer for each job.
type timers struct {
	due chan int
	mu  sync.Mutex
	all []*time.Timer
}

func timersWay(most int) way.Way {
	return way.Way{Name: "timers", Open: func(context.Context, way.Env) (way.Instance, error) {
		return &timers{due: make(chan int, most)}, nil
	}}
}

func (w *timers) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(_ context.Context, job way.Job) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, time.AfterFunc(time.Until(job.Due), func() { w.due <- job.N }))
		return nil
	})
}

func (w *timers) Bulk(context.Context, way.Jobs) error { return way.ErrNoBulk }

func (w *timers) Work(ctx context.Context, ready func(), run func(n int)) error {
	ready()
	for {
		select {
		case n := <-w.due:
			run(n)
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *timers) Close() error {
	for _, timer := range w.all {
		timer.Stop()
	}
	return nil
}

// measured are the values of one kind of measurement of a way.
func measured(t *testing.T, kind string, l Lab) map[string][]result.Value {
	t.Helper()
	all := make(map[string][]result.Value)
	l.Dir, l.Log = t.TempDir(), t.Output()
	l.Tell = func(v result.Value) { all[v.Figure] = append(all[v.Figure], v) }
	k, ok := Find(kind)
	if !ok {
		t.Fatalf("there is no %s", kind)
	}
	if err := l.Measure(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	return all
}

func figures(values map[string][]result.Value) string {
	return strings.Join(slices.Sorted(maps.Keys(values)), " ")
}

func tiny() Sizes {
	s := Smoke()
	s.Lead, s.Over, s.Idle = 100*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
	return s
}

func TestLocalWay(t *testing.T) {
	for _, test := range []struct{ kind, figures string }{
		{"schedule", "memory schedule-1 schedule-32 schedule-bulk"},
		{"lateness", "early late-max late-p50 late-p99 twice unrun"},
		{"burst", "burst-cpu-worker burst-early burst-late-p50 burst-late-p99 burst-rate burst-twice burst-unrun"},
		{"idle", "idle-cpu-worker"},
		{"growth", "growth-early growth-late-p50 growth-late-p99 growth-memory growth-rate growth-schedule growth-unrun"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			got := measured(t, test.kind, Lab{Way: timersWay(10_000), Sizes: tiny(), Round: 2})
			if figures(got) != test.figures {
				t.Errorf("%s: want %s", figures(got), test.figures)
			}
			for name, values := range got {
				for _, v := range values {
					if v.Way != "timers" || v.Round != 2 {
						t.Errorf("%+v", v)
					}
					none := strings.HasSuffix(name, "early") || strings.HasSuffix(name, "unrun") || strings.HasSuffix(name, "twice")
					if none && v.Value != 0 {
						t.Errorf("%s: %v: want none", name, v.Value)
					}
				}
			}
		})
	}
}

// What only schedules keeps no jobs whose memory could be compared.
func TestAFloorHasNoMemory(t *testing.T) {
	floor := timersWay(10_000)
	floor.Floor = true
	got := measured(t, "schedule", Lab{Way: floor, Sizes: tiny()})
	if want := "schedule-1 schedule-32 schedule-bulk"; figures(got) != want {
		t.Errorf("%s: want %s", figures(got), want)
	}
}

func TestNoBulkIsSaid(t *testing.T) {
	v := measured(t, "schedule", Lab{Way: timersWay(10_000), Sizes: tiny()})["schedule-bulk"][0]
	if !v.Absent || v.Note != way.ErrNoBulk.Error() {
		t.Errorf("%+v: want it absent, and why", v)
	}
}

// sloppy counts hits and forgets one firing.
type sloppy struct{ hits int }

func (s *sloppy) Single(_ context.Context, hits, _, _ int) error { s.hits += hits; return nil }
func (s *sloppy) Bulk(context.Context, int, int) error           { return way.ErrNoBulk }
func (s *sloppy) Close() error                                   { return nil }

func (s *sloppy) Fired(context.Context) (int, error) {
	return s.hits/Counters/way.Threshold*Counters - 1, nil
}

func TestThresholdCountsFirings(t *testing.T) {
	counting := way.Counting{Name: "sloppy", Open: func(context.Context, way.Env) (way.Counter, error) { return &sloppy{}, nil }}
	sizes := tiny()
	sizes.OneHits = 20_000
	got := measured(t, "threshold", Lab{Counting: counting, Sizes: sizes})
	if want := "fired-wrong hits-1 hits-32 hits-bulk"; figures(got) != want {
		t.Fatalf("%s: want %s", figures(got), want)
	}
	if v := got["fired-wrong"][0]; v.Value != 1 || v.Note != "199 in place of 200" || v.Way != "sloppy" {
		t.Errorf("%+v: want one too few of 200", v)
	}
	if !got["hits-bulk"][0].Absent {
		t.Error("there is a rate of a call that there is not")
	}
}
