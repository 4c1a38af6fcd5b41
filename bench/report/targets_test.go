package report

import (
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// given is what is known from values of one round, of ways whose jobs are in Redis, except the
// heap's.
func given(t *testing.T, values ...result.Value) *measured {
	t.Helper()
	var results result.Results
	for _, v := range values {
		store := "redis"
		if v.Way == "heap" {
			store = ""
		}
		results.Ways = append(results.Ways, result.Way{Name: v.Way, Store: store})
	}
	results.Values = values
	m, err := gather(results)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func one(way, figure string, size int, value float64) result.Value {
	return result.Value{Way: way, Figure: figure, Size: size, Value: value}
}

func TestJudges(t *testing.T) {
	const missed, lacking = "**missed**", "not measured"
	clean := one("keyfuse", "unrun", million, 0)
	p99 := func(way string, ms float64) result.Value { return one(way, "late-p99", million, ms) }
	rate := func(way string, size int, perSecond float64) result.Value {
		return one(way, "burst-rate", size, perSecond)
	}
	ran := one("keyfuse", "burst-unrun", 50, 0)
	peers := unless("unrun", million, everyPeer("late-p99", million, atMost(0.1)))
	for name, c := range map[string]struct {
		judge  judge
		values []result.Value
		want   string
	}{
		"a ratio that is reached exactly":   {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 100), rate("asynq", 50, 10)}, "met"},
		"a ratio just missed":               {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 99.9), rate("asynq", 50, 10)}, missed},
		"the best form of the peer counts":  {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 100), rate("asynq", 50, 5), rate("asynq-fast", 50, 11)}, missed},
		"the best form of Keyfuse counts":   {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 50), rate("keyfuse-daemon", 50, 100), rate("asynq", 50, 10)}, "met"},
		"the worst size counts":             {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 100), rate("asynq", 50, 1), rate("keyfuse", 90, 9), rate("asynq", 90, 1)}, missed},
		"no peer":                           {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 100)}, lacking},
		"no Keyfuse":                        {drain(asynq, atLeast(10)), []result.Value{rate("asynq", 50, 100)}, lacking},
		"no size in common":                 {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 100), rate("asynq", 90, 1)}, lacking},
		"a peer at zero":                    {drain(asynq, atLeast(10)), []result.Value{ran, rate("keyfuse", 50, 100), rate("asynq", 50, 0)}, lacking},
		"a burst of which some never ran":   {drain(asynq, atLeast(10)), []result.Value{one("keyfuse", "burst-unrun", 50, 1), rate("keyfuse", 50, 100), rate("asynq", 50, 1)}, missed},
		"nobody knows whether all ran":      {drain(asynq, atLeast(10)), []result.Value{rate("keyfuse", 50, 100), rate("asynq", 50, 1)}, lacking},
		"a value within its bound":          {value("late-p99", million, atMost(10)), []result.Value{p99("keyfuse", 10)}, "met"},
		"a value beyond":                    {value("late-p99", million, atMost(10)), []result.Value{p99("keyfuse", 10.01)}, missed},
		"a value at another size":           {value("late-p99", million, atMost(10)), []result.Value{one("keyfuse", "late-p99", 500, 1)}, lacking},
		"an absent value":                   {value("late-p99", million, atMost(10)), []result.Value{{Way: "keyfuse", Figure: "late-p99", Size: million, Absent: true}}, lacking},
		"none early":                        {unless("early", million, never), []result.Value{one("keyfuse", "early", million, 0)}, "met"},
		"one early in one form":             {unless("early", million, never), []result.Value{one("keyfuse", "early", million, 0), one("keyfuse-daemon", "early", million, 1)}, missed},
		"early was not looked at":           {unless("early", million, never), []result.Value{p99("keyfuse", 1)}, lacking},
		"every peer, heap aside":            {peers, []result.Value{clean, p99("keyfuse", 5), p99("asynq", 50), p99("heap", 2)}, "met"},
		"every peer but one":                {peers, []result.Value{clean, p99("keyfuse", 5), p99("asynq", 50), p99("zset-poll", 49)}, missed},
		"every peer, one without it":        {peers, []result.Value{clean, p99("keyfuse", 5), p99("asynq", 50), rate("zset-poll", 50, 1)}, lacking},
		"missed by one, another without it": {peers, []result.Value{clean, p99("keyfuse", 5), p99("asynq", 49), rate("zset-poll", 50, 1)}, missed},
		"every peer, but a counter":         {peers, []result.Value{clean, p99("keyfuse", 5), p99("asynq", 50), one("incr", "hits-1", 0, 1)}, "met"},
		"no peers":                          {peers, []result.Value{clean, p99("keyfuse", 5), p99("heap", 50)}, lacking},
		"SETs are two a job":                {ofSets("schedule-bulk", atLeast(0.35)), []result.Value{one("keyfuse", "schedule-bulk", 0, 70), one("bare events", "schedule-bulk", 0, 100)}, "met"},
		"not enough of the SETs":            {ofSets("schedule-bulk", atLeast(0.35)), []result.Value{one("keyfuse", "schedule-bulk", 0, 69), one("bare events", "schedule-bulk", 0, 100)}, missed},
		"growth for the better":             {growth("growth-rate", 20), []result.Value{one("keyfuse", "growth-rate", 10_000, 10), one("keyfuse", "growth-rate", 3_000_000, 30)}, "met"},
		"growth for the worse":              {growth("growth-rate", 20), []result.Value{one("keyfuse", "growth-rate", 10_000, 10), one("keyfuse", "growth-rate", 3_000_000, 7.9)}, missed},
		"growth of lateness":                {growth("growth-late-p99", 20), []result.Value{one("keyfuse", "growth-late-p99", 10_000, 10), one("keyfuse", "growth-late-p99", 3_000_000, 12.1)}, missed},
		"growth that was cut short":         {growth("growth-rate", 20), []result.Value{one("keyfuse", "growth-rate", 10_000, 10), one("keyfuse", "growth-rate", million, 10)}, lacking},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.judge(given(t, c.values...))
			if got := v.outcome(); got != c.want {
				t.Errorf("got %s, want %s: %+v", got, c.want, v)
			}
		})
	}
}

func TestNothingIsMetWithoutFigures(t *testing.T) {
	for _, target := range targets() {
		if got := target.judge(given(t)).outcome(); got != "not measured" {
			t.Errorf("%s %s%s: %s", target.figure, target.must, target.aim, got)
		}
		if (target.must == "") == (target.aim == "") {
			t.Errorf("%s: one of must and aim has to be there", target.figure)
		}
	}
}

func TestWhatIsLackingIsNamed(t *testing.T) {
	m := given(t, one("keyfuse", "unrun", million, 0), one("keyfuse", "late-p99", million, 5),
		one("asynq", "late-p99", million, 70), one("zset-poll", "burst-rate", 50, 1))
	v := everyPeer("late-p99", million, atMost(0.1))(m)
	for _, want := range []string{"zset-poll", "asynq 70.0 ms"} {
		if !strings.Contains(v.lacks, want) {
			t.Errorf("%q lacks %q", v.lacks, want)
		}
	}
}
