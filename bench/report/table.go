package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// none is shown where there is no figure.
const none = "–"

// table is a table of Markdown with its footnotes. Heads and cells are Markdown.
type table struct {
	heads []string
	text  int // so many columns from the left hold text; the others are aligned right
	rows  [][]string
	notes []string // plain text
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// marks are the superscript numbers of notes, which get into the footnotes once each.
// The same note twice has one mark.
func (t *table) marks(notes ...string) string {
	var numbers []string
	for _, note := range notes {
		i := slices.Index(t.notes, note)
		if i < 0 {
			i = len(t.notes)
			t.notes = append(t.notes, note)
		}
		if number := fmt.Sprint(i + 1); !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		return ""
	}
	return "<sup>" + strings.Join(numbers, ",") + "</sup>"
}

// String is the table and its footnotes, ending in a newline.
func (t *table) String() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.heads)
	rule := slices.Repeat([]string{"--:"}, len(t.heads))
	for i := range t.text {
		rule[i] = "---"
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	if len(t.notes) > 0 {
		b.WriteString("\n")
	}
	for i, note := range t.notes {
		fmt.Fprintf(&b, "<sup>%d</sup> %s.  \n", i+1, strings.TrimSuffix(escape(note), "."))
	}
	return b.String()
}

// cell is a figure of a way: its median, the range, and marks of what is to be known.
func (t *table) cell(m *measured, way, figure string, size int) string {
	c := m.at(way, figure, size)
	notes := slices.Clone(c.notes)
	if !c.known() {
		return none + t.marks(notes...)
	}
	if c.rounds < m.roundsOf(figure, size) {
		notes = append(notes, fmt.Sprintf("%s only", plural(c.rounds, "round")))
	}
	unit := m.figures[figure].Unit
	text := in(unit, c.median)
	if low, high := in(unit, c.min), in(unit, c.max); low != text || high != text {
		text += " (" + low + "–" + high + ")"
	}
	return text + t.marks(notes...)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return count(n) + " " + noun + "s"
}

// name is a way's name as the tables have it: Keyfuse stands out, and what is no way to
// run delayed tasks does too.
func name(w result.Way) string {
	switch {
	case floor(w):
		return "*" + escape(w.Name) + "*"
	case ours(w):
		return "**" + escape(w.Name) + "**"
	}
	return escape(w.Name)
}

// escape makes Markdown of plain text.
func escape(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer(
		`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`,
		"~", `\~`, "&", "&amp;", "<", "&lt;", ">", "&gt;",
	).Replace(text)
}
