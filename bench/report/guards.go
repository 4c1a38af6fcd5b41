package report

import (
	"fmt"
	"iter"
	"math"
)

// unless judges only if counts are 0 in every round of Keyfuse, at each size at which
// the figure that is judged was tried: a rate or a lateness says nothing beside jobs
// that never ran, or too often. A count that is missing makes it not measured.
func unless(figure string, size int, then judge, counts ...string) judge {
	return func(m *measured) verdict {
		v, rounds := then(m), math.MaxInt
		var lacking, notes []string
		for k := range m.eachOf(keyfuse, m.sizesFor(keyfuse, size, append(counts, figure)...), counts) {
			c := m.cells[k]
			if c.max > 0 {
				return m.spoilt(k)
			}
			if !c.known() {
				lacking, notes = append(lacking, lack(k.figure, k.size, k.way)), append(notes, c.notes...)
			}
			rounds = min(rounds, c.rounds)
		}
		if rounds == math.MaxInt {
			lacking = append(lacking, lack(counts[0], size, keyfuse.label))
		}
		switch {
		case v.lacks != "": // which is what to look for first
		case len(lacking) > 0:
			return verdict{lacks: firstOf(lacking), notes: notes}
		case v.met:
			v.rounds = min(v.rounds, rounds)
		}
		return v
	}
}

// firstOf names the first, and how many more there are.
func firstOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s, and %d more", names[0], len(names)-1)
}

// eachOf are the figures of all forms of a family at some sizes.
func (m *measured) eachOf(f family, sizes []int, figures []string) iter.Seq[key] {
	return func(yield func(key) bool) {
		for _, size := range sizes {
			for _, way := range m.forms(f) {
				for _, figure := range figures {
					if !yield(key{way, figure, size}) {
						return
					}
				}
			}
		}
	}
}

// spoilt is missed because of a count.
func (m *measured) spoilt(k key) verdict {
	c, unit := m.cells[k], m.figures[k.figure].Unit
	text := fmt.Sprintf("%s: up to %s %s %s%s", escape(k.way), in(unit, c.max), unit, escape(m.says(k.figure)), of(k.size))
	return verdict{text: text, rounds: c.rounds, notes: c.notes}
}

// drain judges the ratio of the runs a second in a burst.
func drain(other family, b bound) judge {
	return unless("burst-rate", anySize, times("burst-rate", other, b), "burst-unrun", "burst-early", "burst-twice")
}

// never is what follows counts of 0 that were all that is asked.
func never(*measured) verdict {
	return verdict{text: "0 jobs in every round", met: true, rounds: math.MaxInt}
}
