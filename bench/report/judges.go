package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// A judge compares what was measured with a condition.
type judge func(m *measured) verdict

// anySize judges at each size that was tried; the worst counts, so that none can be
// picked.
const anySize = -1

// sizesFor is one size, or all at which a family was tried.
func (m *measured) sizesFor(f family, size int, figures ...string) []int {
	if size == anySize {
		return m.tried(f, figures...)
	}
	return []int{size}
}

// value judges Keyfuse by a value of its own.
func value(figure string, size int, b bound) judge {
	return func(m *measured) verdict {
		s := series{bound: b, of: "size"}
		for _, size := range m.sizesFor(keyfuse, size, figure) {
			f, ok := m.best(keyfuse, figure, size)
			if !ok {
				s.lack(lack(figure, size, keyfuse.label), m.why(keyfuse, figure, size)...)
				continue
			}
			unit := m.figures[figure].Unit
			text := fmt.Sprintf("%s: %s %s%s", escape(f.name), in(unit, f.median), unit, of(size))
			s.add(f.median, verdict{text: text, rounds: f.rounds, notes: f.notes})
		}
		return s.verdict(lack(figure, size, keyfuse.label))
	}
}

// times judges the ratio of Keyfuse to another family's best, at the worst of the sizes
// at which both were tried.
func times(figure string, other family, b bound) judge { return timesAt(figure, anySize, other, b) }

// timesAt is times at one size.
func timesAt(figure string, size int, other family, b bound) judge {
	return func(m *measured) verdict {
		s := series{bound: b, of: "size"}
		theirs := m.sizesFor(other, size, figure)
		for _, size := range m.sizesFor(keyfuse, size, figure) {
			if slices.Contains(theirs, size) {
				s.ratio(m, figure, size, other)
			}
		}
		return s.verdict(lack(figure, size, keyfuse.label, other.label))
	}
}

// ratio adds that of Keyfuse to the best of another family, or what it lacks.
func (s *series) ratio(m *measured, figure string, size int, other family) {
	ours, ok := m.best(keyfuse, figure, size)
	theirs, also := m.best(other, figure, size)
	lacking := theirs.lacking
	switch {
	case also && theirs.median == 0:
		lacking = append(lacking, theirs.name+" above 0")
	case ok && also:
		p := pair{ours, theirs}
		s.add(p.ratio(), p.verdict(m.figures[figure].Unit, size))
	case !also && len(lacking) == 0:
		lacking = append(lacking, other.label)
	}
	if !ok {
		lacking = append(lacking, keyfuse.label)
	}
	if len(lacking) > 0 {
		s.lack(lack(figure, size, lacking...), slices.Concat(m.why(keyfuse, figure, size), m.why(other, figure, size))...)
	}
}

// pair is the same figure of Keyfuse and of another.
type pair struct{ ours, theirs form }

func (p pair) ratio() float64 { return p.ours.median / p.theirs.median }

// verdict shows the ratio and what it is made of.
func (p pair) verdict(unit string, size int) verdict {
	return verdict{
		text: fmt.Sprintf("%s ×: %s %s, %s %s %s%s", number(p.ratio()), escape(p.ours.name), in(unit, p.ours.median),
			escape(p.theirs.name), in(unit, p.theirs.median), unit, of(size)),
		rounds: min(p.ours.rounds, p.theirs.rounds),
		notes:  slices.Concat(p.ours.notes, p.theirs.notes),
	}
}

// everyPeer judges the ratio to each way of others whose jobs outlive their process. One
// peer is enough to miss it, and it is not measured as long as any that ran jobs at all
// lacks the figure here.
func everyPeer(figure string, size int, b bound) judge {
	return func(m *measured) verdict {
		ours, ok := m.best(keyfuse, figure, size)
		if !ok {
			return verdict{lacks: lack(figure, size, keyfuse.label), notes: m.why(keyfuse, figure, size)}
		}
		s := series{bound: b, of: "peer"}
		var lacking, why []string
		for _, w := range m.ways {
			c := m.at(w.Name, figure, size)
			switch {
			case !m.peer(w):
			case !outlives(w) || !c.known() || c.median == 0:
				lacking, why = append(lacking, w.Name), append(why, c.notes...)
			default:
				p := pair{ours, form{name: w.Name, cell: c}}
				s.add(p.ratio(), p.verdict(m.figures[figure].Unit, 0))
			}
		}
		if len(lacking) > 0 {
			s.lack(lack(figure, size, lacking...), why...)
		}
		return s.verdict("any durable peer")
	}
}

// peer says that a way is another's, ran jobs, and keeps them in a server, as far as is
// known.
func (m *measured) peer(w result.Way) bool {
	return w.Store != "" && !floor(w) && !ours(w) && m.ranJobs(w.Name)
}

// ranJobs says that a way took part in more than the thresholds.
func (m *measured) ranJobs(way string) bool {
	for k := range m.cells {
		if k.way == way && !strings.HasPrefix(k.figure, "hits-") && k.figure != "fired-wrong" {
			return true
		}
	}
	return false
}

// block judges for how long Keyfuse blocked Redis. LATENCY tells whole milliseconds, cut
// off: what it calls 3 may have been almost 4.
func block(size int, b bound) judge {
	const latency, ping = "burst-latency", "burst-ping"
	return func(m *measured) verdict {
		s := series{bound: b}
		for _, name := range m.forms(keyfuse) {
			told, seen := m.at(name, latency, size), m.at(name, ping, size)
			c := both(told, seen, func(told, seen float64) float64 { return max(told+1, seen) })
			if !c.known() {
				s.lack(lack(latency+" and "+ping, size, name), slices.Concat(told.notes, seen.notes)...)
				continue
			}
			text := fmt.Sprintf("%s: %s ms%s, the longer of LATENCY's %g + 1, as it cuts off what is less than one, and PING's p99 of %s",
				escape(name), number(c.median), of(size), told.median, number(seen.median))
			s.add(c.median, verdict{text: text, rounds: c.rounds, notes: c.notes})
		}
		return s.verdict(lack(latency+" and "+ping, size, keyfuse.label))
	}
}

// grown are the numbers of pending jobs at which growth is judged.
func grown() []int { return []int{10_000, 100_000, 1_000_000, 3_000_000} }

// growth judges by how many per cent a figure is worse beside the most pending jobs than
// beside the fewest. What is between has to be there as well.
func growth(figure string, percent float64) judge {
	then := func(m *measured) verdict {
		s := series{bound: atMost(percent)}
		for _, name := range m.forms(keyfuse) {
			s.grows(m, figure, name)
		}
		return s.verdict(lack(figure, anySize, keyfuse.label))
	}
	return unless(figure, anySize, then, "growth-early", "growth-unrun")
}

// grows adds by how many per cent the figure is worse, or what is lacking.
func (s *series) grows(m *measured, figure, name string) {
	var cells []cell
	v := verdict{rounds: enough}
	for _, size := range grown() {
		c := m.at(name, figure, size)
		if !c.known() || c.median == 0 {
			s.lack(lack(figure, size, name), c.notes...)
			continue
		}
		cells = append(cells, c)
		v.rounds, v.notes = min(v.rounds, c.rounds), append(v.notes, c.notes...)
	}
	if len(cells) < len(grown()) {
		return
	}
	a, b := cells[0].median, cells[len(cells)-1].median
	unit := m.figures[figure].Unit
	v.text = fmt.Sprintf("%s: %s, %s to %s %s", escape(name), change(a, b), in(unit, a), in(unit, b), unit)
	worse := 100 * (b - a) / a
	if m.figures[figure].MoreIsBetter {
		worse = -worse
	}
	s.add(worse, v)
}

// lack names what a judge needs.
func lack(figure string, size int, of ...string) string {
	text := figure + " of " + escape(strings.Join(of, ", "))
	if size > 0 {
		text += " at " + count(size)
	}
	return text
}

// why are the reasons why forms of a family lack a figure.
func (m *measured) why(f family, figure string, size int) []string {
	var notes []string
	for _, name := range m.forms(f) {
		if c := m.at(name, figure, size); !c.known() {
			notes = append(notes, c.notes...)
		}
	}
	return notes
}

// of says at which size.
func of(size int) string {
	if size <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", count(size))
}
