package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// measured is what is known, by way, figure and size.
type measured struct {
	ways    []result.Way // in the order in which they were given
	figures map[string]result.Figure
	cells   map[key]cell
	watched string // for how long after a kill
}

type key struct {
	way, figure string
	size        int
}

// cell is one figure of one way over all rounds.
type cell struct {
	median, min, max float64
	rounds           int      // with a value; 0: not measured
	notes            []string // in the order of the rounds, each once; then what is always to be known
	byRound          map[int]float64
}

func (c cell) known() bool { return c.rounds > 0 }

// shown says that there is a figure, or a reason why there is none.
func (c cell) shown() bool { return c.known() || len(c.notes) > 0 }

// gather refuses figures that result.Figures does not know: no table would show them.
func gather(results result.Results) (*measured, error) {
	m := collect(results)
	for _, v := range results.Values {
		if _, ok := m.figures[v.Figure]; !ok {
			return nil, fmt.Errorf("way %q has the figure %q, which is none: add it to result.Figures", v.Way, v.Figure)
		}
	}
	return m, nil
}

func collect(results result.Results) *measured {
	m := &measured{
		figures: make(map[string]result.Figure),
		cells:   make(map[key]cell),
		watched: watched(results.Size),
	}
	for _, f := range result.Figures() {
		m.figures[f.Name] = f
	}
	for _, w := range results.Ways {
		m.add(w)
	}
	rounds := make(map[key][]result.Value)
	for _, v := range results.Values {
		k := key{v.Way, v.Figure, v.Size}
		rounds[k] = append(rounds[k], v)
		m.add(result.Way{Name: v.Way, Store: unknown})
	}
	for k, values := range rounds {
		c := over(values)
		if text := remark(m.way(k.way), k.figure, c); text != "" && c.known() {
			c.notes = append(c.notes, text)
		}
		m.cells[k] = c
	}
	return m
}

// way is that of a name, which is in the list.
func (m *measured) way(name string) result.Way {
	return m.ways[slices.IndexFunc(m.ways, func(w result.Way) bool { return w.Name == name })]
}

// add lists a way, once: one that also counts hits is given twice.
func (m *measured) add(way result.Way) {
	if !slices.ContainsFunc(m.ways, func(w result.Way) bool { return w.Name == way.Name }) {
		m.ways = append(m.ways, way)
	}
}

// over makes a cell of the values of all rounds.
func over(values []result.Value) cell {
	slices.SortStableFunc(values, func(a, b result.Value) int { return cmp.Compare(a.Round, b.Round) })
	c := cell{byRound: make(map[int]float64)}
	var known []float64
	for _, v := range values {
		c.note(v.Note)
		if !v.Absent {
			known = append(known, v.Value)
			c.byRound[v.Round] = v.Value
		}
	}
	if c.rounds = len(known); c.rounds > 0 {
		slices.Sort(known)
		c.min, c.max = known[0], known[len(known)-1]
		c.median = (known[(len(known)-1)/2] + known[len(known)/2]) / 2
	}
	return c
}

// note adds a note, unless there is one that differs in its figures only: that of one
// round is enough.
func (c *cell) note(text string) {
	if strings.HasPrefix(text, "scheduling was stopped after ") { // which most slow ways are, each at another job
		text = stopped
	}
	same := func(other string) bool { return shape(other) == shape(text) }
	if text != "" && !slices.ContainsFunc(c.notes, same) {
		c.notes = append(c.notes, text)
	}
}

// shape is a note without its figures.
func shape(note string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == ',' || r == '.' {
			return -1
		}
		return r
	}, note)
}

// both is made of two figures of the same runs, round by round.
func both(a, b cell, of func(a, b float64) float64) cell {
	var values []result.Value
	for round, v := range a.byRound {
		if w, ok := b.byRound[round]; ok {
			values = append(values, result.Value{Round: round, Value: of(v, w)})
		}
	}
	c := over(values)
	for _, note := range slices.Concat(a.notes, b.notes) {
		c.note(note)
	}
	return c
}

// at is a cell that may be empty.
func (m *measured) at(way, figure string, size int) cell { return m.cells[key{way, figure, size}] }

// sizes are those at which any way has the figure, or a reason why it has none, from
// small to large.
func (m *measured) sizes(figure string) []int {
	sizes := make(map[int]bool)
	for k, c := range m.cells {
		if k.figure == figure && c.shown() {
			sizes[k.size] = true
		}
	}
	return slices.Sorted(maps.Keys(sizes))
}

// telling is the largest size at which at least half of the ways with the figure have
// it; ok is false if none has it at all.
func (m *measured) telling(figure string) (size int, ok bool) {
	all, at := make(map[string]bool), make(map[int]int)
	for k, c := range m.cells {
		if k.figure == figure && c.known() {
			all[k.way] = true
			at[k.size]++
		}
	}
	for _, size := range slices.Backward(m.sizes(figure)) {
		if at[size] > 0 && 2*at[size] >= len(all) {
			return size, true
		}
	}
	return 0, false
}

// roundsOf is how many rounds of a figure at a size the way with the most of them has.
func (m *measured) roundsOf(figure string, size int) int {
	most := 0
	for _, w := range m.ways {
		most = max(most, m.at(w.Name, figure, size).rounds)
	}
	return most
}

// better compares two values of a figure: negative if a is better.
func (m *measured) better(figure string, a, b float64) int {
	if m.figures[figure].MoreIsBetter {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// ranked are the ways with the figure at a size, best median first.
func (m *measured) ranked(figure string, size int) []result.Way {
	ways := slices.Clone(m.ways)
	ways = slices.DeleteFunc(ways, func(w result.Way) bool { return !m.at(w.Name, figure, size).known() })
	slices.SortStableFunc(ways, func(a, b result.Way) int {
		return m.better(figure, m.at(a.Name, figure, size).median, m.at(b.Name, figure, size).median)
	})
	return ways
}
