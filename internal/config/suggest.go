package config

import (
	"maps"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// suggest asks whether a name that nobody knows was meant to be one of the
// known, or lists those.
func suggest(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 1 {
		return "want " + known[0]
	}
	return "want one of " + strings.Join(known, ", ")
}

// nearest returns the known name that differs from name by few typing
// mistakes, or "".
func nearest(name string, known []string) string {
	if len(name) > maxQuoted {
		return ""
	}
	best, fewest := "", 1+min(len(name)/3, 2)
	for _, candidate := range known {
		if n := mistakes(strings.ToLower(name), strings.ToLower(candidate)); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// mistakes counts the bytes to add, drop or change to get from a to b
// (Levenshtein's distance).
func mistakes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
