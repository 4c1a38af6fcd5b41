package report

import (
	"slices"
	"testing"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

func TestOver(t *testing.T) {
	rounds := func(values ...float64) []result.Value {
		var all []result.Value
		for i, v := range values {
			all = append(all, result.Value{Round: i, Value: v})
		}
		return all
	}
	for name, c := range map[string]struct {
		values           []result.Value
		median, min, max float64
	}{
		"three rounds": {rounds(3, 1, 2), 2, 1, 3},
		"two rounds":   {rounds(1, 2), 1.5, 1, 2},
		"one round":    {rounds(7), 7, 7, 7},
		"one without":  {append(rounds(1, 3), result.Value{Absent: true, Value: 100, Round: 2}), 2, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			got := over(c.values)
			if got.median != c.median || got.min != c.min || got.max != c.max {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestNotesAreKeptOnceAndInOrder(t *testing.T) {
	got := over([]result.Value{{Round: 2, Note: "b"}, {Round: 0, Note: "a"}, {Round: 1, Note: "a"}})
	if want := []string{"a", "b"}; !slices.Equal(got.notes, want) {
		t.Errorf("got %q, want %q", got.notes, want)
	}
}

func TestTellingIsTheLargestSizeThatHalfHave(t *testing.T) {
	m := given(t,
		one("a", "late-p99", 10, 1), one("b", "late-p99", 10, 1), one("c", "late-p99", 10, 1),
		one("a", "late-p99", 100, 1), one("b", "late-p99", 100, 1),
		one("a", "late-p99", 1000, 1),
	)
	if size, ok := m.telling("late-p99"); size != 100 || !ok {
		t.Errorf("got %d, %t", size, ok)
	}
	if _, ok := m.telling("memory"); ok {
		t.Error("nothing was measured of memory")
	}
}

func TestNotesThatDifferInFiguresOnlyAreOne(t *testing.T) {
	c := over([]result.Value{
		{Round: 0, Note: "of the 18,368 jobs that had run, 30 s after"},
		{Round: 1, Note: "of the 7 jobs that had run, 31 s after"},
		{Round: 2, Note: "another"},
		{Round: 3, Note: "scheduling was stopped after 11 s, at 34,000 of 40,000"},
		{Round: 4, Note: "scheduling was stopped after 10 s, at 8,000 of 40,000"},
	})
	if want := []string{"of the 18,368 jobs that had run, 30 s after", "another", stopped}; !slices.Equal(c.notes, want) {
		t.Errorf("%q: want %q", c.notes, want)
	}
}
