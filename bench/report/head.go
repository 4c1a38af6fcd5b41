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

// commits is the commit of Keyfuse that was measured, empty if no run names one, or a
// table of them by the kinds of runs if there are several.
func commits(runs []result.Run) (one, several string) {
	of := make(map[string][]string)
	var kinds, all []string
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, r := range runs {
		commit := cmp.Or(r.Commit, notNoted)
		kinds, all = add(kinds, r.Figure), add(all, commit)
		of[r.Figure] = add(of[r.Figure], commit)
	}
	if len(all) < 2 {
		return strings.TrimPrefix(strings.Join(all, ""), notNoted), ""
	}
	t := &table{heads: []string{"measured", "commits of Keyfuse"}, text: 2}
	for _, kind := range kinds {
		t.row(escape(kind), escape(strings.Join(of[kind], ", ")))
	}
	return "", t.String()
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
