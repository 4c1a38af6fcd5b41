package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// The charts are SVG that the page itself has: lines over the last hour. Colours come
// from the style sheet, so that they are those of light and dark.
const (
	chartWidth, chartHeight = 640, 160
	chartLeft, chartBottom  = 48, 20
	chartTop                = 8
)

// series is a line of a chart.
type series struct {
	class  string // of the style sheet
	values []float64
}

// chart draws some lines that share a scale; label says in words what it shows, for
// those who can't see it. All text in it is made here.
func chart(label string, top float64, axis func(v float64) string, lines ...series) template.HTML {
	top = niceTop(top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(label))
	for _, share := range []float64{0, 0.5, 1} {
		y := chartY(share)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, chartLeft, chartWidth, y, y)
		fmt.Fprintf(&b, `<text class="axis" x="%d" y="%.1f" text-anchor="end">%s</text>`, chartLeft-6, y+4, template.HTMLEscapeString(axis(share*top)))
	}
	for _, mark := range []struct {
		minute       int
		text, anchor string
	}{{0, "1 h ago", "start"}, {30, "30 min", "middle"}, {60, "now", "end"}} {
		fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%d" text-anchor="%s">%s</text>`, chartX(mark.minute, 61), chartHeight-4, mark.anchor, mark.text)
	}
	for _, line := range lines {
		fmt.Fprintf(&b, `<polyline class="%s" points="`, line.class)
		for i, v := range line.values {
			fmt.Fprintf(&b, "%.1f,%.1f ", chartX(i, len(line.values)), chartY(min(v/top, 1)))
		}
		b.WriteString(`"/>`)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // what is not made here is escaped above
}

func chartX(i, n int) float64 {
	return chartLeft + float64(i)*(chartWidth-chartLeft)/float64(max(1, n-1))
}

func chartY(share float64) float64 {
	return chartTop + (1-share)*(chartHeight-chartTop-chartBottom)
}

// niceTop is the next of 1, 2 and 5 times a power of ten.
func niceTop(top float64) float64 {
	if top <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(top)))
	for _, step := range []float64{1, 2, 5} {
		if top <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// firingsChart shows firings and failures a minute.
func firingsChart(minutes []moment) template.HTML {
	fired, failed, top := series{class: "fired"}, series{class: "failed"}, 0.0
	for _, m := range minutes {
		fired.values = append(fired.values, float64(m.Fired))
		failed.values = append(failed.values, float64(m.Failed))
		top = max(top, float64(m.Fired))
	}
	return chart("firings and failures a minute of the last hour", top, short, fired, failed)
}

// latenessChart shows p50 and p99 of lateness in milliseconds.
func latenessChart(minutes []moment) template.HTML {
	p50, p99, top := series{class: "p50"}, series{class: "p99"}, 0.0
	for _, m := range minutes {
		p50.values = append(p50.values, float64(m.P50)/float64(time.Millisecond))
		p99.values = append(p99.values, float64(m.P99)/float64(time.Millisecond))
		top = max(top, float64(m.P99)/float64(time.Millisecond))
	}
	return chart("lateness of starts in the last hour, p50 and p99", top, func(v float64) string { return short(v) + " ms" }, p50, p99)
}

// short is a number in few characters.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return trimZero(v/1e6) + "M"
	case v >= 1e3:
		return trimZero(v/1e3) + "k"
	}
	return trimZero(v)
}

func trimZero(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
