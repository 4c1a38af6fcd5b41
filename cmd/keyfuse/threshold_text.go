package main

import (
	"strconv"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// rule says in words what fires a threshold.
func rule(t client.Threshold) string {
	drops := t.OnTimeout == client.TimeoutDrops
	out := count(t.Count, "hit")
	switch {
	case t.Debounce == 0 && drops:
		out += " within " + view.Exact(t.Within)
	case t.Debounce == 0:
		out += " or " + view.Exact(t.Within)
	case drops:
		out += " within " + view.Exact(t.Debounce) + " of each other, " + view.Exact(t.MaxWait) + " in all"
	default:
		out += " or " + view.Exact(t.Debounce) + " without one, " + view.Exact(t.MaxWait) + " at most"
	}
	if t.Mode == client.Once {
		out += ", once a window"
	}
	return out
}

// tally says how many hits there are of how many.
func tally(n, of int64) string { return strconv.FormatInt(n, 10) + " of " + count(of, "hit") }

// windowText is an open window in a few words.
func windowText(w *client.Window) string {
	out := tally(w.Count, w.Threshold)
	if w.Items > 0 {
		out += ", " + count(w.Items, "item")
	}
	if w.Fired {
		out += ", fired"
	}
	return out
}

// openText says which windows of a threshold are open.
func openText(info client.ThresholdInfo, now time.Time) string {
	switch {
	case info.Window != nil:
		return windowText(info.Window) + ", ends " + distance(info.Window.End, now)
	case info.Open > 0:
		return count(info.Open, "window")
	}
	return "none"
}

// firedText is one of the last firings of a threshold.
func firedText(f client.Fired, of string, now time.Time) string {
	out := when(f.At, now) + ": " + count(f.Count, "hit")
	if f.ID != of {
		out += " of " + clip(f.ID, 60)
	}
	switch f.Reason {
	case "timeout":
		out += ", the window ended"
	case "manual":
		out += ", by hand"
	}
	return out
}

func (a *app) printThresholds(all []client.ThresholdInfo) error {
	now := time.Now()
	t := newTable(a.stdout, "THRESHOLD", "TASK", "FIRES AFTER", "OPEN", "LAST FIRED")
	for _, info := range all {
		last := "never"
		if len(info.Fired) > 0 {
			last = distance(info.Fired[0].At, now) + ", " + count(info.Fired[0].Count, "hit")
		}
		t.row(clip(info.ID, 60), printable(info.Task), rule(info.Threshold), openText(info, now), last)
	}
	return t.end()
}

// printThreshold shows all of a threshold for people.
func (a *app) printThreshold(info client.ThresholdInfo, now time.Time) error {
	t := newTable(a.stdout, "threshold", printable(info.ID))
	t.row("task", printable(info.Task))
	if len(info.Payload) > 0 {
		t.row("payload", clip(string(info.Payload), 2000))
	}
	t.row("fires after", rule(info.Threshold))
	t.row("items", "at most "+strconv.Itoa(info.MaxItems)+", "+bytesText(int64(info.MaxBytes)))
	t.row("open", openText(info, now))
	label := "last fired"
	for _, f := range info.Fired {
		t.row(label, firedText(f, info.ID, now))
		label = ""
	}
	if len(info.Fired) == 0 {
		t.row(label, "never")
	}
	return t.end()
}
