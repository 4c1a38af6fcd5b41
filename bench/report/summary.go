package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// A decider is a figure by which people choose, at one size.
type decider struct {
	column
	best string // what the best of them is said to be
	size int
	at   string // what the size is
}

// deciders are those of which anything was measured.
func deciders(m *measured) []decider {
	all := []decider{
		{column{"burst-rate", "drain"}, "fastest drain", 0, " of %s jobs due at one moment"},
		{column{"late-p99", "late p99"}, "least late (p99)", 0, " beside %s pending"},
		{column{"kill-lost", "not run again after `kill -9`"}, "fewest not run again within " + m.watched + " after `kill -9`", 0, " of %s jobs"},
		{column{"memory", "memory a job"}, "least memory a job (of RAM or of disk, as the notes say)", 0, " with %s pending"},
	}
	var known []decider
	for _, d := range all {
		if size, ok := m.telling(d.figure); ok {
			d.size = size
			if d.at = fmt.Sprintf(d.at, count(size)); size == 0 {
				d.at = ""
			}
			known = append(known, d)
		}
	}
	return known
}

// summary is the table and the sentences that answer which way to take.
func summary(m *measured) string {
	known := deciders(m)
	if len(known) == 0 {
		return "Nothing that decides was measured.\n"
	}
	t := &table{heads: []string{"way", "jobs are in"}, text: 2}
	for _, d := range known {
		t.heads = append(t.heads, d.label+", "+m.figures[d.figure].Unit+d.at)
	}
	for _, w := range summaryRows(m, known) {
		row := []string{name(w), store(w)}
		for _, d := range known {
			row = append(row, t.decides(m, d, w))
		}
		t.row(row...)
	}
	var b strings.Builder
	b.WriteString(t.String() + "\n")
	for _, d := range known {
		b.WriteString(sentence(m, d))
	}
	return b.String()
}

// summaryRows are the ways that have any decider, in the order of the first.
func summaryRows(m *measured, known []decider) []result.Way {
	var ways []result.Way
	for _, d := range known {
		for _, w := range m.ranked(d.figure, d.size) {
			if !floor(w) && !slices.Contains(ways, w) {
				ways = append(ways, w)
			}
		}
	}
	return ways
}

func store(w result.Way) string {
	if w.Store == "" {
		return "its process"
	}
	return escape(w.Store)
}

// decides is a cell of the summary.
func (t *table) decides(m *measured, d decider, w result.Way) string {
	if d.figure == "kill-lost" && w.Store == "" && !m.at(w.Name, d.figure, d.size).known() {
		return "all" + t.marks(inProcess)
	}
	return t.cell(m, w.Name, d.figure, d.size)
}

// sentence names the best in a figure, of all and of those whose jobs outlive their
// process, and where Keyfuse is: the library, which competes with all but its daemon.
func sentence(m *measured, d decider) string {
	ranked := slices.DeleteFunc(m.ranked(d.figure, d.size), func(w result.Way) bool { return floor(w) || daemon(w) })
	if len(ranked) == 0 {
		return ""
	}
	say := func(ways []result.Way) string {
		best := m.at(ways[0].Name, d.figure, d.size).median
		names := []string{}
		for _, w := range ways {
			if m.at(w.Name, d.figure, d.size).median == best {
				names = append(names, escape(w.Name))
			}
		}
		return fmt.Sprintf("%s with %s %s", strings.Join(names, ", "), in(m.figures[d.figure].Unit, best), m.figures[d.figure].Unit)
	}
	text := fmt.Sprintf("- %s%s%s: %s", strings.ToUpper(d.best[:1]), d.best[1:], d.at, say(ranked))
	lasting := slices.DeleteFunc(slices.Clone(ranked), func(w result.Way) bool { return !outlives(w) })
	if len(lasting) > 0 && say(lasting) != say(ranked) {
		text += "; of those whose jobs are in a server, " + say(lasting)
	}
	return text + keyfusePlace(m, d, ranked) + ".\n"
}

// keyfusePlace says where the best form of Keyfuse is among the ways.
func keyfusePlace(m *measured, d decider, ranked []result.Way) string {
	best, ok := m.best(keyfuse, d.figure, d.size)
	if !ok {
		return ". Keyfuse was not measured"
	}
	place := 1
	for _, w := range ranked {
		if m.better(d.figure, m.at(w.Name, d.figure, d.size).median, best.median) < 0 {
			place++
		}
	}
	return fmt.Sprintf(". %s: %s, place %d of %d", escape(best.name), in(m.figures[d.figure].Unit, best.median), place, len(ranked))
}
