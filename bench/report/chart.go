package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// The measures of the chart, in its pixels.
const (
	chartWidth = 860
	barsLeft   = 250
	barsRight  = 750 // what is right of it is for the figure of the longest bar
	rowHeight  = 22
	panelHead  = 56
	panelFoot  = 36
)

type chart struct {
	Width, Height int
	Desc          string
	Panels        []panel
}

type panel struct {
	Title, Sub  string
	Top, Bottom int
	Ticks       []tick
	Bars        []bar
}

type tick struct {
	X     float64
	Label string
}

type bar struct {
	Name, Class, Text string
	LabelX, X, Y      int
	Width, TextX      float64
	Range             bool // whether the least and the most differ
	Low, High         float64
	Middle            int
}

func writeChart(w io.Writer, m *measured) error {
	t, err := template.ParseFS(templates, "chart.svg.tmpl")
	if err != nil {
		return err
	}
	c := chart{Width: chartWidth, Height: 16}
	c.add(m, "burst-rate", "Burst: runs a second, more is better", "%s jobs due at one moment")
	c.add(m, "late-p99", "Lateness p99 in ms, less is better", "10,000 jobs over 30 s, beside %s pending")
	if len(c.Panels) == 0 {
		c.Desc, c.Height = "Neither bursts nor lateness were measured.", 40
	}
	return t.Execute(w, c)
}

// add adds a panel below the others, if the figure was measured.
func (c *chart) add(m *measured, figure, title, at string) {
	size, ok := m.telling(figure)
	if !ok {
		return
	}
	ways := m.ranked(figure, size)
	p := panel{Title: title, Top: c.Height, Bottom: panelHead + rowHeight*len(ways)}
	scale := scaleFor(m, figure, size, ways)
	p.Ticks = scale.ticks()
	var said []string
	for i, w := range ways {
		b := scale.bar(m.at(w.Name, figure, size), m.figures[figure].Unit)
		b.Name, b.Class = short(w.Name), class(w)
		b.Y = panelHead + rowHeight*i
		b.Middle = b.Y + 8
		p.Bars = append(p.Bars, b)
		said = append(said, w.Name+" "+b.Text)
	}
	p.Sub = fmt.Sprintf(at, count(size)) + "; logarithmic" + p.legend()
	c.Panels = append(c.Panels, p)
	c.Desc += fmt.Sprintf("%s (%s): %s. ", title, fmt.Sprintf(at, count(size)), strings.Join(said, ", "))
	c.Height += p.Bottom + panelFoot
}

// class is how the bar of a way looks.
func class(w result.Way) string {
	switch {
	case ours(w):
		return "ours"
	case floor(w):
		return "floor"
	}
	return "other"
}

// noted is behind a figure of which there is more to be known.
const noted = " *"

// legend explains the marks that the panel has.
func (p panel) legend() string {
	legend := ""
	if slices.ContainsFunc(p.Bars, func(b bar) bool { return b.Range }) {
		legend += "; the line is from the least to the most of the rounds"
	}
	if slices.ContainsFunc(p.Bars, func(b bar) bool { return strings.HasSuffix(b.Text, noted) }) {
		legend += "; * see the note in the table"
	}
	return legend
}

// short is a name that fits left of the bars.
func short(name string) string {
	const most = 34
	if letters := []rune(name); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return name
}

// A scale is logarithmic between two powers of ten.
type scale struct{ low, high int }

// scaleFor reaches from the power of ten below all values to that above. What is not
// above 0 has no place on it, and gets a bar of no length.
func scaleFor(m *measured, figure string, size int, ways []result.Way) scale {
	least, most := math.Inf(1), math.Inf(-1)
	for _, w := range ways {
		c := m.at(w.Name, figure, size)
		for _, v := range []float64{c.min, c.median, c.max} {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	if least > most {
		return scale{0, 1}
	}
	low := int(math.Floor(math.Log10(least)))
	return scale{low, max(low+1, int(math.Ceil(math.Log10(most))))}
}

func (s scale) x(v float64) float64 {
	if v <= 0 {
		return barsLeft
	}
	x := barsLeft + (barsRight-barsLeft)*(math.Log10(v)-float64(s.low))/float64(s.high-s.low)
	return math.Round(10*max(x, barsLeft)) / 10
}

func (s scale) ticks() []tick {
	var ticks []tick
	for power := s.low; power <= s.high; power++ {
		v := math.Pow10(power)
		label := separated(fmt.Sprintf("%.*f", max(0, -power), v))
		ticks = append(ticks, tick{s.x(v), label})
	}
	return ticks
}

func (s scale) bar(c cell, unit string) bar {
	x, text := s.x(c.median), in(unit, c.median)
	if len(c.notes) > 0 {
		text += noted
	}
	return bar{
		Text: text, LabelX: barsLeft - 8, X: barsLeft,
		Width: math.Round(10*(x-barsLeft)) / 10, TextX: max(x, s.x(c.max)) + 6,
		Range: c.min != c.max, Low: s.x(c.min), High: s.x(c.max),
	}
}
