package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

func hidden(r rune) bool { return !strconv.IsPrint(r) }

// oneLine makes one line of a message, whatever is in it.
func oneLine(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ")
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if hidden(r) || r == utf8.RuneError && size == 1 {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// when shows a time for people: absolute, and how far from now.
func when(t, now time.Time) string {
	if t.IsZero() {
		return "never: its fuse has no TTL"
	}
	return clock(t) + " (" + distance(t, now) + ")"
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -07:00") }

func distance(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + config.FormatDuration(d.Round(time.Second))
	case d > 0:
		return "in less than 1s"
	case d > -time.Second:
		return "now"
	default:
		return config.FormatDuration(d.Abs().Round(time.Second)) + " ago"
	}
}

// printJSON prints one document on one line.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printf prints to stdout; an error there (a closed pipe) ends the command.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// table prints aligned columns. Cells must be printable.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	t.row(header...)
	return t
}

func (t table) row(cells ...string) {
	// The writer keeps its first error and gives it again in Flush.
	_, _ = fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t table) end() error { return t.w.Flush() }
