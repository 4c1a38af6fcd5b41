package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/bench/measure"
	"github.com/keyfuse-io/keyfuse/bench/result"
)

func TestWatchedAsLongAsMeasured(t *testing.T) {
	if want := fmt.Sprintf("the %.0f s that", measure.Full().Mending.Seconds()); !strings.HasPrefix(watched("full"), want) {
		t.Errorf("%q does not begin with %q", watched("full"), want)
	}
}

func TestWhatIsCountedAsMemoryIsNamed(t *testing.T) {
	for store, want := range map[string]string{
		"redis": "used_memory", "postgres": "disk", "rabbitmq": "resident", "beanstalkd": "resident", "postgres+redis": "disk",
	} {
		if got := counted(result.Way{Store: store}); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", store, got, want)
		}
	}
}

func TestRemarks(t *testing.T) {
	redis, postgres := "redis", "postgres"
	for name, c := range map[string]struct {
		way, store, figure string
		value              float64
		want               string // the beginning; empty: none
	}{
		"polling is late":            {"zset-poll", redis, "late-p99", 100, "one loop looks"},
		"its half is not":            {"zset-poll", redis, "late-p50", 50, ""},
		"River's jobs are not lost":  {"river", postgres, "kill-lost", 5, "not lost"},
		"none were":                  {"river", postgres, "kill-lost", 0, ""},
		"a process's are":            {"heap", "", "kill-lost", 5, "its jobs were in"},
		"River at its fastest":       {"river-fast", postgres, "kill-lost", 5, ""},
		"an idle Redis":              {"asynq", redis, "idle-cpu-store", 0.5, "all Redis servers"},
		"an idle store that is none": {"river", postgres, "idle-cpu-store", 0.5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := collect(result.Results{
				Ways:   []result.Way{{Name: c.way, Store: c.store}},
				Values: []result.Value{one(c.way, c.figure, 0, c.value)},
			})
			got := strings.Join(m.at(c.way, c.figure, 0).notes, "")
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsAbsentIsShownWithItsReason(t *testing.T) {
	var m *measured
	shows := func(text, what string) {
		t.Helper()
		if !strings.Contains(text, "–<sup>1</sup>") || !strings.Contains(text, "<sup>1</sup> scheduled late.") {
			t.Errorf("%s does not tell it:\n%s", what, text)
		}
	}
	m = given(t, absent("asynq", "burst-rate", 50, "scheduled late"))
	burst := slices.IndexFunc(kinds(), func(k kind) bool { return k.title == "Burst" })
	shows(kinds()[burst].text(m), "the table of bursts")
	m = given(t, absent("keyfuse", "growth-rate", 50, "scheduled late"))
	shows(growthTable(m), "the table of growth")
	m = given(t, absent("keyfuse", "late-p99", million, "scheduled late"))
	shows(strings.ReplaceAll(targetsTable(m), "late-p99 of Keyfuse at 1,000,000", none), "the table of targets")
	if _, ok := m.telling("late-p99"); ok {
		t.Error("a figure that nobody has decides")
	}
}
