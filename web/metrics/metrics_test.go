package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// held is a source that holds what it is told.
type held struct {
	stats    client.Stats
	horizons []client.Horizon
	now      time.Time
	err      error
}

func (h held) Stats(context.Context) (client.Stats, error) { return h.stats, h.err }

func (h held) Horizons(context.Context, ...time.Duration) ([]client.Horizon, time.Time, error) {
	return h.horizons, h.now, h.err
}

func sample() held {
	now := time.Unix(1_800_000_000, 0)
	return held{
		stats: client.Stats{
			Tasks: []client.TaskStats{{Task: "mail", Pending: 5, Running: 1, Retrying: 2, Dead: 3, Paused: true}},
			Nodes: []client.Node{{Name: "a"}, {Name: "b"}},
		},
		horizons: []client.Horizon{{Task: "mail", Overdue: 4, Since: now.Add(-90 * time.Second)}},
		now:      now,
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v: %s", w.Code, err, text)
	}
	return string(text)
}

// exercised has had something of everything.
func exercised(source Source) *Metrics {
	m := New(source, "1.2.3")
	o := m.Observe(engine.Observer{})
	firing := engine.Firing{Job: registry.Job{Task: "mail", Reason: "timer", Attempt: 1}, Source: "index", Outcome: engine.Done, Late: 3 * time.Millisecond, Took: time.Second}
	o.Settled(firing)
	firing.Job.Attempt, firing.Outcome, firing.Source = 2, engine.Died, "a word that somebody wrote"
	o.Settled(firing)
	o.Claimed(250, 3*time.Millisecond)
	o.Wrote(250, 2*time.Millisecond)
	o.Heard()
	o.Gap()
	o.Canary(time.Millisecond)
	o.Degraded("silent")
	o.Failed("claiming", context.DeadlineExceeded)
	return m
}

func TestWhatIsPublished(t *testing.T) {
	text := scrape(t, exercised(sample()))
	for _, want := range []string{
		`keyfuse_firings_total{reason="timer",source="index",task="mail"} 1`,
		`keyfuse_firings_total{reason="timer",source="other",task="mail"} 1`,
		`keyfuse_runs_total{outcome="dead",task="mail"} 1`,
		`keyfuse_lateness_seconds_bucket{le="0.002"} 0`,
		`keyfuse_lateness_seconds_bucket{le="0.005"} 1`,
		`keyfuse_lateness_seconds_bucket{le="3600"} 1`,
		`keyfuse_run_duration_seconds_count{task="mail"} 2`,
		`keyfuse_jobs{state="pending",task="mail"} 5`,
		`keyfuse_jobs{state="dead",task="mail"} 3`,
		`keyfuse_overdue_jobs{task="mail"} 4`,
		`keyfuse_oldest_overdue_seconds{task="mail"} 90`,
		`keyfuse_task_paused{task="mail"} 1`,
		`keyfuse_nodes 2`,
		`keyfuse_redis_up 1`,
		`keyfuse_degraded 1`,
		`keyfuse_redis_errors_total{doing="claiming",kind="timeout"} 1`,
		`keyfuse_claim_runs_sum 250`,
		`keyfuse_build_info{version="1.2.3"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestARedisThatIsAwayIsTold(t *testing.T) {
	text := scrape(t, New(held{err: errors.New("away")}, ""))
	if !strings.Contains(text, "keyfuse_redis_up 0\n") || strings.Contains(text, "keyfuse_jobs{") {
		t.Errorf("published: %s", text)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	m := New(held{}, "")
	o := m.Observe(engine.Observer{})
	for i := range 10 * MaxTasks {
		o.Settled(engine.Firing{Job: registry.Job{Task: fmt.Sprint("task", i), Reason: registry.Reason(fmt.Sprint(i))}, Source: fmt.Sprint(i), Outcome: engine.Done})
		o.Failed("claiming", fmt.Errorf("error %d", i))
	}
	text := scrape(t, m)
	if n := strings.Count(text, "\nkeyfuse_firings_total{"); n != MaxTasks+1 {
		t.Errorf("%d series of firings, want %d", n, MaxTasks+1)
	}
	if n := strings.Count(text, "\nkeyfuse_redis_errors_total{"); n != 1 {
		t.Errorf("%d series of errors, want 1", n)
	}
}

// What Redis holds is anybody's: no name of a task keeps what is of others from being
// told, and those of the config file have labels of their own.
func TestNoTaskHidesAnother(t *testing.T) {
	source := sample()
	junk := func(name string, horizon client.Horizon) {
		source.stats.Tasks = append([]client.TaskStats{{Task: name, Paused: true}}, source.stats.Tasks...)
		horizon.Task = name
		source.horizons = append(source.horizons, horizon)
	}
	for i := range 2 * MaxTasks {
		junk(fmt.Sprint("a", i), client.Horizon{})
	}
	junk("\xff", client.Horizon{Overdue: 7, Since: source.now.Add(-time.Hour)})
	junk("", client.Horizon{})
	text := scrape(t, New(source, "", "mail", "bill"))
	for _, want := range []string{
		`keyfuse_jobs{state="pending",task="mail"} 5`,
		`keyfuse_oldest_overdue_seconds{task="mail"} 90`,
		`keyfuse_oldest_overdue_seconds{task="(other)"} 0`, // it is paused
		`keyfuse_task_paused{task="(other)"} 0`,            // not all of it
		`keyfuse_runs_total{outcome="dead",task="bill"} 0`, // before the first one, for rates
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestKindsOfErrors(t *testing.T) {
	for want, err := range map[string]error{
		"timeout":       fmt.Errorf("claim: %w", context.DeadlineExceeded),
		"connection":    io.EOF,
		"forbidden":     refusal("NOPERM no"),
		"out of memory": refusal("OOM full"),
		"loading":       refusal("LOADING wait"),
		"refused":       refusal("ERR what"),
		"other":         errors.New("what"),
	} {
		if got := KindOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

var _ redis.Error = refusal("")

// TestDeployNamesWhatThereIs holds the dashboard and the alert rules against the names.
func TestDeployNamesWhatThereIs(t *testing.T) {
	families, err := exercised(sample()).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
		if f.GetType().String() == "HISTOGRAM" {
			names = append(names, f.GetName()+"_bucket", f.GetName()+"_sum", f.GetName()+"_count")
		}
	}
	for _, file := range []string{"alerts.yaml", "grafana.json"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		used := regexp.MustCompile(`keyfuse_[a-z_]+`).FindAllString(string(text), -1)
		if len(used) < 8 {
			t.Errorf("%s uses %d metrics", file, len(used))
		}
		for _, name := range used {
			if !slices.Contains(names, name) {
				t.Errorf("%s uses %s, which there is not", file, name)
			}
		}
	}
}

func BenchmarkSettled(b *testing.B) {
	m := New(held{}, "")
	o := m.Observe(engine.Observer{})
	f := engine.Firing{Job: registry.Job{Task: "mail", Reason: "timer", Attempt: 1}, Source: "index", Outcome: engine.Done, Late: 3 * time.Millisecond, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		o.Settled(f)
	}
}
