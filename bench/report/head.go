package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// span is from when the first run began until the last one ended: that of the machine's
// head if no run says when it was.
func span(results result.Results) (from, to string) {
	var first, last time.Time
	for _, r := range results.Runs {
		at, err := time.Parse(time.RFC3339, r.At)
		if err != nil {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if end := at.Add(time.Duration(r.Took * float64(time.Second))); end.After(last) {
			last = end
		}
	}
	if first.IsZero() {
		return when(results.Machine.Begun), when(results.Machine.Ended)
	}
	return when(first.Format(time.RFC3339)), when(last.Format(time.RFC3339))
}

// notNoted is the size or the commit of results that do not name it.
const notNoted = "not noted"

// apart is what all runs have in common, empty if no run names it, or a table of it by
// the kinds of runs, under a heading, if they differ.
func apart(runs []result.Run, heading string, of func(result.Run) string) (one, several string) {
	byKind := make(map[string][]string)
	var kinds, all []string
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, r := range runs {
		s := cmp.Or(of(r), notNoted)
		kinds, all = add(kinds, r.Figure), add(all, s)
		byKind[r.Figure] = add(byKind[r.Figure], s)
	}
	if len(all) < 2 {
		return strings.TrimPrefix(strings.Join(all, ""), notNoted), ""
	}
	t := &table{heads: []string{"measured", heading}, text: 2}
	for _, kind := range kinds {
		t.row(escape(kind), escape(strings.Join(byKind[kind], ", ")))
	}
	return "", t.String()
}

func commits(runs []result.Run) (one, several string) {
	return apart(runs, "commits of Keyfuse", func(r result.Run) string { return r.Commit })
}

// kernels tell machines apart that are the same by their CPU, cores and memory.
func kernels(runs []result.Run) (one, several string) {
	return apart(runs, "kernels", func(r result.Run) string { return r.Kernel })
}

// versions are in the order of the names.
func versions(of map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, escape(name)+" "+escape(of[name]))
	}
	return strings.Join(all, ", ")
}

// maxFailure is how many bytes of a failure are shown: it may end in a server's log.
const maxFailure = 160

// failed are the runs that failed, their rounds counted from 1 as people do.
func failed(runs []result.Run) []result.Run {
	var all []result.Run
	for _, r := range runs {
		if r.Failed != "" {
			r.Round++
			if len(r.Failed) > maxFailure {
				r.Failed = strings.ToValidUTF8(r.Failed[:maxFailure], "") + "…"
			}
			all = append(all, r)
		}
	}
	return all
}
