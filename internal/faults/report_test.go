package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report lets the daemons end, prints what came of the run, and fails the test
// for what should not have.
func (h *harness) report() {
	h.t.Helper()
	h.end()
	v := h.book.check()
	h.t.Logf("\n%s", h.summary(v))
	problems := append(v.problems(), h.problems...)
	for _, text := range problems[:min(len(problems), maxShown)] {
		h.t.Error(text)
	}
	if more := len(problems) - maxShown; more > 0 {
		h.t.Errorf("and %d more", more)
	}
}

const maxShown = 30

// summary is the text for docs/guarantees.md.
func (h *harness) summary(v *verdict) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	total := 0
	for _, n := range v.jobs {
		total += n
	}
	line("seed %d, %d daemons, lease %s, %s", h.opts.seed, h.opts.daemons, h.opts.lease, time.Since(h.begun).Round(time.Second))
	line("jobs         %d: %s", total, counted(v.jobs))
	line("hits         %d acknowledged, %d counted by %d firings", v.hits, v.fired, v.crossings)
	line("runs         %d, handlers started %d times", v.firings, v.starts)
	again := 0
	for _, n := range v.duplicates {
		again += n
	}
	line("started more than once, explained: %d", again)
	for _, cause := range slices.Sorted(maps.Keys(v.duplicates)) {
		line("  %6d  %s", v.duplicates[cause], cause)
	}
	if len(v.forgotten) > 0 {
		line("lost by failovers, of what no replica had confirmed: %s", counted(v.forgotten))
	}
	if v.drift > 0 {
		line("due times moved with their slots, and came later by up to %s", v.drift)
	}
	line("lost         %d", len(v.lost))
	line("early        %d", len(v.early))
	line("cancelled, moved or replaced, and ran  %d", len(v.cancelled))
	line("unexplained  %d", len(v.unexplained))
	line("counters that do not add up  %d", len(v.counts))
	line("other problems  %d", len(h.problems))
	line("")
	h.writeFaults(&text)
	return text.String()
}

// counted lists numbers by name.
func counted(numbers map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, fmt.Sprintf("%d %s", numbers[name], name))
	}
	return strings.Join(parts, ", ")
}

// writeFaults is a table of the kinds of fault, and how long after each
// everything overdue had run.
func (h *harness) writeFaults(to *strings.Builder) {
	byKind := make(map[string][]time.Duration)
	overdue := make(map[string]int)
	for _, s := range h.suffered {
		byKind[s.kind()] = append(byKind[s.kind()], s.recovered)
		overdue[s.kind()] += s.overdue
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d faults\ttimes\toverdue jobs\trecovered after, median\tmax\n", len(h.suffered))
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		all := byKind[kind]
		slices.Sort(all)
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f s\t%.1f s\n", kind, len(all), overdue[kind], all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
	}
	_ = w.Flush() // a strings.Builder takes everything
}
