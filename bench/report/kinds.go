package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// A kind is figures that stand in one table. There is one for each size at which anything
// is known of them; by the first figure its rows are sorted, best first.
type kind struct {
	title   string
	at      string // what a size is: "%s pending beside"; empty: it has none
	columns []column
}

type column struct{ figure, label string }

func kinds() []kind {
	return []kind{
		{"Scheduling", "", []column{
			{"schedule-1", "one caller"}, {"schedule-32", "32 callers"}, {"schedule-bulk", "bulk"},
		}},
		{"Lateness", "%s pending beside", []column{
			{"late-p99", "p99"},
			{"late-p50", "p50"},
			{"late-max", "max"},
			{"early", "early"},
			{"unrun", "not run"},
			{"twice", "run twice"},
		}},
		{"Burst", "%s jobs due at one moment", []column{
			{"burst-rate", "drain"},
			{"burst-late-p50", "late p50"},
			{"burst-late-p99", "late p99"},
			{"burst-early", "early"},
			{"burst-unrun", "not run"},
			{"burst-twice", "run twice"},
			{"burst-cpu-store", "CPU store"},
			{"burst-cpu-worker", "CPU worker"},
			{"burst-block", "Redis blocked"},
			{"burst-latency", "LATENCY"},
			{"burst-ping", "PING"},
		}},
		{"Memory", "", []column{{"memory", "memory"}}},
		{"Idle", "", []column{
			{"idle-commands", "commands"}, {"idle-cpu-worker", "CPU worker"}, {"idle-cpu-store", "CPU store"},
		}},
		{"`kill -9` of the worker", "", []column{
			{"kill-lost", "not run again"}, {"kill-twice", "twice"}, {"kill-again", "again within"},
		}},
		{"Thresholds", "", []column{
			{"hits-32", "32 callers"}, {"hits-1", "one caller"}, {"hits-bulk", "bulk"}, {"fired-wrong", "wrong firings"},
		}},
	}
}

// kindSections has a section for each kind of which anything was measured.
func kindSections(m *measured) []section {
	var sections []section
	for _, k := range kinds() {
		if text := k.text(m); text != "" {
			sections = append(sections, section{k.title, text})
		}
	}
	return sections
}

func (k kind) text(m *measured) string {
	sizes := k.sizes(m)
	if len(sizes) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(k.legend(m))
	for _, size := range sizes {
		if k.at != "" {
			fmt.Fprintf(&b, "\n### "+k.at+"\n", count(size))
		}
		fmt.Fprintf(&b, "\n%s\n%s", k.rounds(m, size), k.byFigure(m, size))
	}
	return b.String()
}

// rounds says of how many rounds the figures are.
func (k kind) rounds(m *measured, size int) string {
	most := 0
	for _, c := range k.columns {
		most = max(most, m.roundsOf(c.figure, size))
	}
	switch most {
	case 0:
		return "No figure of any round.\n"
	case 1:
		return "Of one round.\n"
	}
	return "Medians of " + plural(most, "round") + ".\n"
}

// sizes are those at which there is anything of the kind.
func (k kind) sizes(m *measured) []int {
	var sizes []int
	for _, c := range k.columns {
		sizes = append(sizes, m.sizes(c.figure)...)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// legend says what the columns are.
func (k kind) legend(m *measured) string {
	var b strings.Builder
	for _, c := range k.columns {
		if len(m.sizes(c.figure)) > 0 {
			fmt.Fprintf(&b, "- %s: %s (%s)\n", c.label, escape(m.says(c.figure)), m.figures[c.figure].Unit)
		}
	}
	return b.String()
}

// byFigure is the table of one size: ways by figures.
func (k kind) byFigure(m *measured, size int) *table {
	t := &table{heads: []string{"way"}, text: 1}
	columns := slices.DeleteFunc(slices.Clone(k.columns), func(c column) bool {
		return !slices.Contains(m.sizes(c.figure), size)
	})
	for _, c := range columns {
		t.heads = append(t.heads, c.label+", "+m.figures[c.figure].Unit)
	}
	for _, w := range k.rows(m, size) {
		row := []string{name(w)}
		for _, c := range columns {
			row = append(row, t.cell(m, w.Name, c.figure, size))
		}
		t.row(row...)
	}
	return t
}

// rows are the ways of which anything is known at a size, sorted by the first figure;
// those without it come last.
func (k kind) rows(m *measured, size int) []result.Way {
	var ways []result.Way
	for _, w := range m.ways {
		if k.any(m, w.Name, size) {
			ways = append(ways, w)
		}
	}
	lead := k.columns[0].figure
	slices.SortStableFunc(ways, func(a, b result.Way) int {
		x, y := m.at(a.Name, lead, size), m.at(b.Name, lead, size)
		if !x.known() || !y.known() {
			return cmp.Compare(min(y.rounds, 1), min(x.rounds, 1))
		}
		return m.better(lead, x.median, y.median)
	})
	return ways
}

// any says that something is known of a way: a figure, or why there is none.
func (k kind) any(m *measured, way string, size int) bool {
	return slices.ContainsFunc(k.columns, func(c column) bool {
		return m.at(way, c.figure, size).shown()
	})
}
