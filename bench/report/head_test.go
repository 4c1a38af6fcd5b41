package report

import (
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

func TestSpanIsFromTheFirstRunToTheEndOfTheLast(t *testing.T) {
	results := result.Results{
		Machine: result.Machine{Begun: "2000-01-01T00:00:00Z", Ended: "2000-01-01T09:00:00Z"},
		Runs: []result.Run{
			{At: "2000-01-02T05:00:00Z", Took: 60}, {At: "2000-01-02T04:00:00+01:00", Took: 7}, {At: ""},
		},
	}
	if from, to := span(results); from != "2000-01-02 03:00 UTC" || to != "2000-01-02 05:01 UTC" {
		t.Errorf("from %s to %s", from, to)
	}
	results.Runs = results.Runs[2:]
	if from, to := span(results); from != "2000-01-01 00:00 UTC" || to != "2000-01-01 09:00 UTC" {
		t.Errorf("without a time of any run: from %s to %s", from, to)
	}
}

func TestCommits(t *testing.T) {
	a, b := result.Run{Figure: "burst", Commit: "aaa"}, result.Run{Figure: "idle", Commit: "bbb"}
	for name, c := range map[string]struct {
		runs []result.Run
		one  string
		rows []string // of the table
	}{
		"one":           {[]result.Run{a, a}, "aaa", nil},
		"none is named": {[]result.Run{{Figure: "burst"}}, "", nil},
		"two":           {[]result.Run{a, b}, "", []string{"| burst | aaa |", "| idle | bbb |"}},
		"two of a kind": {[]result.Run{a, {Figure: "burst", Commit: "ccc"}, a}, "", []string{"| burst | aaa, ccc |"}},
		"one is named":  {[]result.Run{a, {Figure: "idle"}}, "", []string{"| burst | aaa |", "| idle | not noted |"}},
	} {
		t.Run(name, func(t *testing.T) {
			one, several := commits(c.runs)
			if one != c.one || (several == "") != (c.rows == nil) {
				t.Errorf("got %q and\n%s", one, several)
			}
			for _, row := range c.rows {
				if !strings.Contains(several, row+"\n") {
					t.Errorf("no row %q in\n%s", row, several)
				}
			}
		})
	}
}

func TestMachinesAreToldApart(t *testing.T) {
	results := example(t)
	for i := range results.Runs {
		results.Runs[i].Kernel = "Linux 1"
	}
	if page, _ := written(t, results); !strings.Contains(page, "; Linux 1; load") || strings.Contains(page, "| kernels |") {
		t.Error("one kernel is not that of the machine")
	}
	results.Runs[0].Kernel = "Linux 2"
	page, _ := written(t, results)
	if row := "| " + results.Runs[0].Figure + " | Linux 2"; !strings.Contains(page, row) || strings.Contains(page, "; Linux") {
		t.Errorf("no row %q, or one kernel for all, in\n%s", row, page)
	}
}

func TestSmokeIsSaidFirst(t *testing.T) {
	results := example(t)
	const warning = "**These figures mean nothing"
	if page, _ := written(t, results); strings.Contains(page, warning) {
		t.Error("the full size is said to mean nothing")
	}
	results.Size = "smoke"
	page, _ := written(t, results)
	if lines := strings.Split(page, "\n"); !strings.HasPrefix(lines[2], warning) {
		t.Errorf("below the title is %q", lines[2])
	}
}
