package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// anySize judges at each size at which there is what is needed; the worst counts, so
// that no size can be picked.
const anySize = -1

// A bound is what a value must not be below, or above.
type bound struct {
	limit float64
	least bool
}

func atLeast(limit float64) bound { return bound{limit, true} }
func atMost(limit float64) bound  { return bound{limit, false} }

func (b bound) holds(v float64) bool {
	if b.least {
		return v >= b.limit
	}
	return v <= b.limit
}

// farther is how far a value is on the wrong side: more is worse.
func (b bound) farther(v float64) float64 {
	if b.least {
		return -v
	}
	return v
}

// worst calls judge at each size, and returns the verdict of the worst value. What it
// lacks is said if there is no size.
func worst(sizes []int, b bound, lacks string, judge func(size int) (value float64, v verdict, ok bool)) verdict {
	found, farthest := verdict{lacks: lacks}, math.Inf(-1)
	for _, size := range sizes {
		value, v, ok := judge(size)
		if ok && b.farther(value) > farthest {
			v.met = b.holds(value)
			found, farthest = v, b.farther(value)
		}
	}
	return found
}

// sizesFor is one size, or all that there are of the figure.
func (m *measured) sizesFor(figure string, size int) []int {
	if size == anySize {
		return m.sizes(figure)
	}
	return []int{size}
}

// value judges Keyfuse's best form by a value of its own.
func value(figure string, size int, b bound) judge {
	return func(m *measured) verdict {
		lacks := lack(figure, size, keyfuse)
		return worst(m.sizesFor(figure, size), b, lacks, func(size int) (float64, verdict, bool) {
			form, c, ok := m.best(keyfuse, figure, size)
			unit := m.figures[figure].Unit
			text := fmt.Sprintf("%s: %s %s%s", escape(form), in(unit, c.median), unit, of(size))
			return c.median, verdict{text: text, notes: c.notes}, ok
		})
	}
}

// times judges the ratio of Keyfuse's best form to another family's best, at the worst
// of the sizes that both have.
func times(figure string, other family, b bound) judge { return timesAt(figure, anySize, other, b) }

// timesAt is times at one size.
func timesAt(figure string, size int, other family, b bound) judge {
	return func(m *measured) verdict {
		lacks := lack(figure, size, keyfuse, other)
		return worst(m.sizesFor(figure, size), b, lacks, func(size int) (float64, verdict, bool) {
			p, ok := m.pair(figure, size, other)
			return p.ratio(), verdict{text: p.text(m.figures[figure].Unit) + of(size), notes: p.notes()}, ok
		})
	}
}

// drain judges the ratio of the runs a second in a burst.
func drain(other family, b bound) judge {
	return unless("burst-unrun", anySize, times("burst-rate", other, b))
}

// ofSets judges Keyfuse's jobs a second by the SETs a second that bare events make: two
// for each of their jobs.
func ofSets(figure string, b bound) judge {
	return func(m *measured) verdict {
		lacks := lack(figure, anySize, keyfuse, events)
		return worst(m.sizes(figure), b, lacks, func(size int) (float64, verdict, bool) {
			p, ok := m.pair(figure, size, events)
			p.theirs.median *= 2
			return p.ratio(), verdict{text: p.text("SETs/s"), notes: p.notes()}, ok
		})
	}
}

// pair is the same figure of Keyfuse and of another.
type pair struct {
	form, peer   string // ways
	ours, theirs cell
}

// pair is that of the best forms; ok is false if there is no ratio of them.
func (m *measured) pair(figure string, size int, other family) (p pair, ok bool) {
	var also bool
	p.form, p.ours, ok = m.best(keyfuse, figure, size)
	p.peer, p.theirs, also = m.best(other, figure, size)
	return p, ok && also && p.theirs.median != 0
}

func (p pair) ratio() float64 { return p.ours.median / p.theirs.median }

// text shows the ratio and what it is made of; the unit is that of the other.
func (p pair) text(unit string) string {
	return fmt.Sprintf("%s ×: %s %s, %s %s %s", number(p.ratio()),
		escape(p.form), in(unit, p.ours.median), escape(p.peer), in(unit, p.theirs.median), unit)
}

func (p pair) notes() []string { return slices.Concat(p.ours.notes, p.theirs.notes) }

// everyPeer judges the ratio to each way whose jobs outlive their process. One peer is
// enough to miss it, and it is not measured as long as any that ran jobs at all lacks
// the figure here.
func everyPeer(figure string, size int, b bound) judge {
	return func(m *measured) verdict {
		form, ours, ok := m.best(keyfuse, figure, size)
		if !ok {
			return verdict{lacks: lack(figure, size, keyfuse)}
		}
		var lacking []string
		found, farthest, peers := verdict{}, math.Inf(-1), 0
		for _, w := range m.ways {
			p := pair{form, w.Name, ours, m.at(w.Name, figure, size)}
			switch {
			case floor(w) || w.Store == "" || keyfuse.has(w) || !m.ranJobs(w.Name):
			case w.Store == unknown || !p.theirs.known() || p.theirs.median == 0:
				lacking = append(lacking, escape(w.Name))
			default:
				peers++
				if ratio := p.ratio(); b.farther(ratio) > farthest {
					farthest = b.farther(ratio)
					found = verdict{text: p.text(m.figures[figure].Unit), met: b.holds(ratio), notes: p.notes()}
				}
			}
		}
		return found.every(peers, lacking)
	}
}

// every completes the verdict on the nearest of so many peers.
func (v verdict) every(peers int, lacking []string) verdict {
	if peers > 0 {
		v.text += fmt.Sprintf(", the nearest of %s", plural(peers, "peer"))
	}
	switch {
	case peers == 0 && len(lacking) == 0:
		v.lacks = "any durable peer"
	case peers == 0 || len(lacking) > 0 && v.met:
		v.lacks = strings.Join(lacking, ", ")
	}
	if v.lacks != "" && v.text != "" {
		v.lacks += " (of the others: " + v.text + ")"
	}
	return v
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

// unless judges only if a count is 0 in every round of every form of Keyfuse: a lateness
// says nothing beside jobs that never ran.
func unless(figure string, size int, then judge) judge {
	return func(m *measured) verdict {
		seen := false
		for _, size := range m.sizesFor(figure, size) {
			for _, w := range m.forms(keyfuse) {
				c := m.at(w.Name, figure, size)
				if seen = seen || c.known(); c.max > 0 {
					unit := m.figures[figure].Unit
					return verdict{text: fmt.Sprintf("%s: up to %s %s %s%s", escape(w.Name), in(unit, c.max), unit, m.figures[figure].What, of(size))}
				}
			}
		}
		if !seen {
			return verdict{lacks: lack(figure, size, keyfuse)}
		}
		return then(m)
	}
}

// never is what follows a count of 0 that was all that is asked.
func never(*measured) verdict { return verdict{text: "0 jobs in every round", met: true} }

// growth judges by how many per cent a figure is worse beside 3,000,000 pending jobs
// than beside 10,000, in the form of Keyfuse where it changes least.
func growth(figure string, percent float64) judge {
	return func(m *measured) verdict {
		const from, to = 10_000, 3_000_000
		best := verdict{lacks: fmt.Sprintf("%s of Keyfuse at %s and %s", figure, count(from), count(to))}
		least := math.Inf(1)
		for _, w := range m.forms(keyfuse) {
			a, b := m.at(w.Name, figure, from), m.at(w.Name, figure, to)
			if !a.known() || !b.known() || a.median == 0 {
				continue
			}
			worse := 100 * (b.median - a.median) / a.median
			if m.figures[figure].MoreIsBetter {
				worse = -worse
			}
			if worse < least {
				unit := m.figures[figure].Unit
				text := fmt.Sprintf("%s: %s, %s to %s %s", escape(w.Name), change(a.median, b.median), in(unit, a.median), in(unit, b.median), unit)
				least, best = worse, verdict{text: text, met: worse <= percent, notes: slices.Concat(a.notes, b.notes)}
			}
		}
		return best
	}
}

// lack names what a judge needs.
func lack(figure string, size int, of ...family) string {
	var labels []string
	for _, f := range of {
		labels = append(labels, f.label)
	}
	text := figure + " of " + strings.Join(labels, " and ")
	if size > 0 {
		text += " at " + count(size)
	}
	return text
}

// of says at which size.
func of(size int) string {
	if size == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", count(size))
}
