package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// verdict is what a judge saw. What lacks anything is neither met nor missed.
type verdict struct {
	text   string // the figures that it saw
	met    bool
	rounds int    // of the value that has the fewest of those that were needed
	lacks  string // what was not measured
	notes  []string
}

// enough rounds make a verdict that needs no reserve.
const enough = 3

// grade is what a verdict counts as.
type grade string

const (
	met         grade = "met"
	metByFew    grade = "met of fewer than three rounds"
	missed      grade = "missed"
	missedByFew grade = "missed of fewer than three rounds"
	notMeasured grade = "not measured"
)

func (v verdict) grade() grade {
	switch {
	case v.lacks != "":
		return notMeasured
	case v.met && v.rounds < enough:
		return metByFew
	case v.met:
		return met
	case v.rounds < enough:
		return missedByFew
	}
	return missed
}

// outcome is a verdict in a word, and of how many rounds it is if those are few.
func (v verdict) outcome() string {
	switch v.grade() {
	case metByFew:
		return "met, of " + plural(v.rounds, "round")
	case missed:
		return "**missed**"
	case missedByFew:
		return "**missed**, of " + plural(v.rounds, "round")
	}
	return string(v.grade())
}

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

// series is a bound that several values have to keep, so that the worst of them counts.
// One is enough to miss it; it is met only if nothing is lacking.
type series struct {
	bound
	of      string // what each value is of, where that is to be told: "size", "peer"
	worst   verdict
	value   float64 // of the worst
	values  int
	rounds  int // the fewest of any value
	lacking []string
	notes   []string // why it is lacking
}

func (s *series) add(value float64, v verdict) {
	if s.values == 0 || s.farther(value) > s.farther(s.value) {
		s.value, s.worst = value, v
	}
	if s.values == 0 {
		s.rounds = math.MaxInt
	}
	s.rounds = min(s.rounds, v.rounds)
	s.values++
}

func (s *series) lack(what string, notes ...string) {
	s.lacking = append(s.lacking, what)
	s.notes = append(s.notes, notes...)
}

// verdict is that on all of them; none is what is lacking if nothing is known to be.
func (s *series) verdict(none string) verdict {
	v := s.worst
	if s.values > 1 && s.of != "" {
		v.text += ", the worst of " + plural(s.values, s.of)
	}
	if s.values == 0 {
		if len(s.lacking) == 0 {
			s.lack(none)
		}
		return verdict{lacks: strings.Join(s.lacking, ", "), notes: s.notes}
	}
	if v.met = s.holds(s.value); !v.met {
		return v
	}
	v.rounds = s.rounds
	if len(s.lacking) > 0 {
		v.lacks = fmt.Sprintf("%s (of the others: %s)", strings.Join(s.lacking, ", "), v.text)
		v.notes = slices.Concat(v.notes, s.notes)
	}
	return v
}
