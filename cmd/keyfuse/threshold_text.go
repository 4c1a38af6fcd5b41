package main

import (
	"strconv"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// openText says which windows of a threshold are open.
func openText(info client.ThresholdInfo, now time.Time) string {
	switch {
	case info.Window != nil:
		return view.WindowText(info.Window) + ", ends " + distance(info.Window.End, now)
	case info.Open > 0:
		return view.Count(info.Open, "window")
	}
	return "none"
}

// firedText is one of the last firings of a threshold.
func firedText(f client.Fired, of string, now time.Time) string {
	out := when(f.At, now) + ": " + view.Count(f.Count, "hit")
	if f.ID != of {
		out += " of " + view.Clip(f.ID, 60)
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
			last = distance(info.Fired[0].At, now) + ", " + view.Count(info.Fired[0].Count, "hit")
		}
		t.row(view.Clip(info.ID, 60), view.Printable(info.Task), view.Rule(info.Threshold), openText(info, now), last)
	}
	return t.end()
}

// printThreshold shows all of a threshold for people.
func (a *app) printThreshold(info client.ThresholdInfo, now time.Time) error {
	t := newTable(a.stdout, "threshold", view.Printable(info.ID))
	t.row("task", view.Printable(info.Task))
	if len(info.Payload) > 0 {
		t.row("payload", view.Clip(string(info.Payload), 2000))
	}
	t.row("fires after", view.Rule(info.Threshold))
	t.row("items", "at most "+strconv.Itoa(info.MaxItems)+", "+view.Bytes(int64(info.MaxBytes)))
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
