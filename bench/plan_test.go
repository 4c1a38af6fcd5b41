package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/measure"
	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

func twoKinds() []measure.Kind {
	return []measure.Kind{
		{Name: "one by one", Rounds: 2, Guess: time.Minute},
		{Name: "at once", Rounds: 1, Guess: time.Hour, Together: true},
	}
}

func twoWays(measure.Kind) []string { return []string{"a", "b"} }

func titles(batches []batch) []string {
	var all []string
	for _, b := range batches {
		all = append(all, b.title())
	}
	return all
}

func TestPlanGoesThroughTheWaysInTurn(t *testing.T) {
	want := []string{
		"one by one of a, round 1", "one by one of b, round 1",
		"one by one of b, round 2", "one by one of a, round 2",
		"at once of 2 ways, round 1",
	}
	if got := titles(plan(twoKinds(), twoWays)); !slices.Equal(got, want) {
		t.Errorf("%q: want %q", got, want)
	}
}

func TestEachRoundBeginsAtAnotherWay(t *testing.T) {
	ways := []string{"a", "b", "c", "d", "e"}
	for round, want := range []string{"abcde", "bcdea", "deabc"} {
		if got := strings.Join(rotated(ways, round, 3), ""); got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
	}
	if got := rotated(nil, 2, 3); len(got) != 0 {
		t.Errorf("of no ways: %q", got)
	}
}

// A way that only schedules has no part in what runs jobs, even if it is asked for.
func TestFloorsOnlySchedule(t *testing.T) {
	a := &app{ways: []way.Way{{Name: "floor", Floor: true}, {Name: "whole"}}}
	for _, k := range measure.All() {
		got := a.taking(k, runFlags{size: "full", ways: []string{"f", "w"}, chosen: []string{"floor", "whole"}})
		want := []string{"whole"}
		switch {
		case k.Name == "schedule":
			want = []string{"floor", "whole"}
		case k.Counting:
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s of %q: want %q", k.Name, got, want)
		}
	}
}

func TestLeftIsWhatHasNotSucceeded(t *testing.T) {
	runs := []result.Run{
		{Figure: "one by one", Way: "a", Round: 0},
		{Figure: "one by one", Way: "a", Round: 1, Failed: "it did"},
		{Figure: "at once", Way: "b", Round: 0},
	}
	want := []string{
		"one by one of b, round 1", "one by one of b, round 2", "one by one of a, round 2",
		"at once of a, round 1",
	}
	if got := titles(left(plan(twoKinds(), twoWays), runs)); !slices.Equal(got, want) {
		t.Errorf("%q: want %q", got, want)
	}
}

func TestExpect(t *testing.T) {
	all := plan(twoKinds(), twoWays)
	if got := expectAll(all, nil); got != 4*time.Minute+time.Hour {
		t.Errorf("%s: want what one would guess, 1h4m", got)
	}
	runs := []result.Run{
		{Figure: "one by one", Way: "a", Took: 10},
		{Figure: "one by one", Way: "a", Took: 20},
		{Figure: "at once", Way: "a", Took: 1},
	}
	if got := expectAll(all, runs); got != 2*15*time.Second+2*time.Minute+time.Hour {
		t.Errorf("%s: want 15 s for those that took so long before", got)
	}
}

func burstRate(way string, size int, v float64) result.Value {
	return result.Value{Kind: "burst", Way: way, Figure: "burst-rate", Size: size, Value: v}
}

// What a run that is made again does not give must not be left of the older one.
func TestKeepReplacesTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	results, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	other := result.Value{Kind: "growth", Way: "a", Figure: "growth-rate", Value: 5}
	keep(results, result.Run{Figure: "burst", Way: "a", Failed: "half"}, []result.Value{burstRate("a", 1, 1), burstRate("a", 2, 2)})
	keep(results, result.Run{Figure: "burst", Way: "b"}, []result.Value{burstRate("b", 1, 3)})
	keep(results, result.Run{Figure: "growth", Way: "a"}, []result.Value{{Way: "a", Figure: "growth-rate", Value: 5}})
	keep(results, result.Run{Figure: "burst", Way: "a"}, []result.Value{burstRate("a", 1, 4)})
	if err := save(file, results); err != nil {
		t.Fatal(err)
	}
	if results, err = load(file); err != nil {
		t.Fatal(err)
	}
	wantRuns := []result.Run{{Figure: "burst", Way: "b"}, {Figure: "growth", Way: "a"}, {Figure: "burst", Way: "a"}}
	wantValues := []result.Value{burstRate("b", 1, 3), other, burstRate("a", 1, 4)}
	if !slices.Equal(results.Runs, wantRuns) || !slices.Equal(results.Values, wantValues) {
		t.Errorf("%+v and %+v: want %+v and %+v", results.Runs, results.Values, wantRuns, wantValues)
	}
}

func TestKeepLeavesValuesThatWereNotMadeAgain(t *testing.T) {
	run := func(at, failed string) result.Run {
		return result.Run{Figure: "burst", Way: "a", At: at, Commit: at, Failed: failed}
	}
	results := &result.Results{}
	keep(results, run("monday", "no server"), nil)
	keep(results, run("tuesday", ""), []result.Value{burstRate("a", 1, 1)})
	keep(results, run("wednesday", "no luck"), nil)
	wantRuns := []result.Run{run("tuesday", "made again at wednesday: no luck")}
	wantValues := []result.Value{burstRate("a", 1, 1)}
	if !slices.Equal(results.Runs, wantRuns) || !slices.Equal(results.Values, wantValues) {
		t.Errorf("%+v and %+v: want %+v and %+v", results.Runs, results.Values, wantRuns, wantValues)
	}
}

func TestReadGivesValuesWithTheError(t *testing.T) {
	const value = `{"Value":{"way":"a","figure":"memory","value":3}}` + "\n"
	want := []result.Value{{Way: "a", Figure: "memory", Value: 3}}
	for _, test := range []struct{ printed, says string }{
		{value + `{"Failed":"no luck"}`, "no luck"},
		{value + `{"Value":{"wa`, "it printed"},
	} {
		got, err := read([]byte(test.printed))
		if !reflect.DeepEqual(got, want) || err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", test.printed, got, err)
		}
	}
	if _, err := read([]byte(`{"Missing":"no server"}`)); err == nil || err.Error() != "no server" || !missingIs(err) {
		t.Errorf("%v: want servers.ErrMissing", err)
	}
}

func missingIs(err error) bool { return err.(missing).Is(servers.ErrMissing) }

func TestFacts(t *testing.T) {
	m := machine()
	if m.CPU == "" || m.Cores < 1 || !strings.HasSuffix(m.Memory, " GiB") || !strings.HasPrefix(m.Kernel, "Linux ") || len(strings.Fields(m.Load)) != 3 {
		t.Errorf("%+v: something is not known", m)
	}
	all := versions(t.Context())
	for _, name := range []string{"go", "bullmq", "ioredis"} {
		if all[name] == "" {
			t.Errorf("the version of %s is not known: %v", name, all)
		}
	}
}
