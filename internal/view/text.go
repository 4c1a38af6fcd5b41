package view

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/client"
)

// Printable shows hostile text on a terminal: as it is if every character can
// be seen, else quoted as in Go.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	return strconv.Quote(s)
}

// Clip is printable text of at most n characters or so, for a table.
func Clip(s string, n int) string {
	cut := len(s) > 4*n // no more bytes than that can be shown anyway
	if cut {
		s = s[:4*n]
	}
	shown := []rune(Printable(s))
	if len(shown) > n {
		shown, cut = shown[:n], true
	}
	if cut {
		return string(shown) + "…"
	}
	return string(shown)
}

// Bytes is a size in the largest unit that leaves at least one.
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, suffix := float64(n), ""
	for _, suffix = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value /= unit; value < unit {
			break
		}
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + suffix
}

// Count says how many of what: "1 job", "2 jobs".
func Count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(int64(n), 10) + " " + what + "s"
}

// Rule says in words what fires a threshold.
func Rule(t client.Threshold) string {
	drops := t.OnTimeout == client.TimeoutDrops
	out := Count(t.Count, "hit")
	switch {
	case t.Debounce == 0 && drops:
		out += " within " + Exact(t.Within)
	case t.Debounce == 0:
		out += " or " + Exact(t.Within)
	case drops:
		out += " within " + Exact(t.Debounce) + " of each other, " + Exact(t.MaxWait) + " in all"
	default:
		out += " or " + Exact(t.Debounce) + " without one, " + Exact(t.MaxWait) + " at most"
	}
	if t.Mode == client.Once {
		out += ", once a window"
	}
	return out
}

// Tally says how many hits there are of how many.
func Tally(n, of int64) string { return strconv.FormatInt(n, 10) + " of " + Count(of, "hit") }

// WindowText is an open window in a few words.
func WindowText(w *client.Window) string {
	out := Tally(w.Count, w.Threshold)
	if w.Items > 0 {
		out += ", " + Count(w.Items, "item")
	}
	if w.Fired {
		out += ", fired"
	}
	return out
}

func hidden(r rune) bool { return !strconv.IsPrint(r) }
