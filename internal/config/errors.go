package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a config file.
type Error struct {
	File string
	Line int    // from 1; zero when it is about the file as a whole
	Path string // where in the file, as in tasks.cancel-order.timeout; empty at its top
	Msg  string // what is wrong and what to do; never a secret
}

// Error says it all on one line.
func (e Error) Error() string {
	var where strings.Builder
	where.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&where, ":%d", e.Line)
	}
	if e.Path != "" {
		where.WriteString(": " + e.Path)
	}
	return where.String() + ": " + e.Msg
}

// Errors is everything that is wrong with a config file, in the order of its
// lines.
type Errors []Error

// Error says each on a line of its own.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.Is and errors.As each error of the list.
func (es Errors) Unwrap() []error {
	all := make([]error, len(es))
	for i, e := range es {
		all[i] = e
	}
	return all
}

func byLine(a, b Error) int { return cmp.Compare(a.Line, b.Line) }

const maxQuoted = 60

// quote shows text from a file or a command line, however hostile, on one
// line of bounded length.
func quote(s string) string {
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q…", s[:maxQuoted])
	}
	return fmt.Sprintf("%q", s)
}
