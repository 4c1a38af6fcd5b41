package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// growths are the figures of growth.
func growths() []result.Figure {
	return slices.DeleteFunc(result.Figures(), func(f result.Figure) bool { return !strings.HasPrefix(f.Name, "growth-") })
}

// growthTable has each figure of growth by how many jobs are pending, and how much the
// last is more than the first. It is empty if there is none.
func growthTable(m *measured) string {
	pending := make(map[int]bool)
	for _, f := range growths() {
		for _, size := range m.sizes(f.Name) {
			pending[size] = true
		}
	}
	if len(pending) == 0 {
		return ""
	}
	sizes := slices.Sorted(maps.Keys(pending))
	t := &table{heads: []string{"figure", "way"}, text: 2}
	for _, size := range sizes {
		t.heads = append(t.heads, count(size)+" pending")
	}
	t.heads = append(t.heads, "change")
	for _, f := range growths() {
		for _, w := range m.ways {
			t.grows(m, f, w, sizes)
		}
	}
	return t.String()
}

// grows adds the row of one figure of one way, if anything is known of it at any size.
func (t *table) grows(m *measured, f result.Figure, w result.Way, sizes []int) {
	row := []string{escape(strings.TrimPrefix(m.says(f.Name), "growth: ")) + ", " + f.Unit, name(w)}
	var medians []float64
	shown := false
	for _, size := range sizes {
		c := m.at(w.Name, f.Name, size)
		if shown = shown || c.shown(); c.known() {
			medians = append(medians, c.median)
		}
	}
	if !shown {
		return // and no notes of it
	}
	for _, size := range sizes {
		row = append(row, t.cell(m, w.Name, f.Name, size))
	}
	switch {
	case len(medians) < 2 || medians[0] == 0:
		t.row(append(row, none)...)
	default:
		t.row(append(row, change(medians[0], medians[len(medians)-1]))...)
	}
}
