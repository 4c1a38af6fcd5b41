package main

import (
	"strconv"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
)

// definitionJSON is the definition of a threshold in JSON.
type definitionJSON struct {
	ID            string `json:"id,omitempty"`
	IDBase64      string `json:"id_base64,omitempty"`
	Task          string `json:"task"`
	Payload       string `json:"payload,omitempty"`
	PayloadBase64 string `json:"payload_base64,omitempty"`
	Count         int64  `json:"count"` // that fires
	Within        string `json:"within"`
	OnTimeout     string `json:"on_timeout"`
	Mode          string `json:"mode"`
	Debounce      string `json:"debounce,omitempty"`
	MaxWait       string `json:"max_wait,omitempty"`
	MaxItems      int    `json:"max_items"`
	MaxBytes      int    `json:"max_bytes"`

	Defined string `json:"defined,omitempty"` // threshold: new, replaced or same
}

// thresholdJSON is a definition and what happens under it.
type thresholdJSON struct {
	definitionJSON
	Open        int64       `json:"open"`             // windows
	Window      *windowJSON `json:"window,omitempty"` // the open one, unless it is a pattern
	LastFirings []firedJSON `json:"last_firings"`     // the latest first
}

type windowJSON struct {
	Count     int64  `json:"count"`
	Threshold int64  `json:"threshold"`
	Started   string `json:"started"`
	Ends      string `json:"ends"`
	Items     int    `json:"items"`
	Fired     bool   `json:"fired"` // mode once
}

type firedJSON struct {
	At       string `json:"at"`
	Reason   string `json:"reason"`
	Count    int64  `json:"count"`
	ID       string `json:"id,omitempty"`
	IDBase64 string `json:"id_base64,omitempty"`
}

func definitionOf(t client.Threshold) definitionJSON {
	out := definitionJSON{
		Task: t.Task, Count: t.Count, Within: exact(t.Within), OnTimeout: string(t.OnTimeout), Mode: string(t.Mode),
		MaxItems: t.MaxItems, MaxBytes: t.MaxBytes,
	}
	if t.Debounce > 0 {
		out.Debounce, out.MaxWait = exact(t.Debounce), exact(t.MaxWait)
	}
	out.ID, out.IDBase64 = textOrBase64(t.ID)
	out.Payload, out.PayloadBase64 = textOrBase64(string(t.Payload))
	return out
}

func thresholdOf(info client.ThresholdInfo) thresholdJSON {
	out := thresholdJSON{definitionJSON: definitionOf(info.Threshold), Open: info.Open, LastFirings: []firedJSON{}}
	if w := info.Window; w != nil {
		out.Window = &windowJSON{w.Count, w.Threshold, stamp(w.Start), stamp(w.End), w.Items, w.Fired}
	}
	for _, f := range info.Fired {
		fired := firedJSON{At: stamp(f.At), Reason: f.Reason, Count: f.Count}
		fired.ID, fired.IDBase64 = textOrBase64(f.ID)
		out.LastFirings = append(out.LastFirings, fired)
	}
	return out
}

// exact is a duration to the millisecond, as ParseDuration reads it.
func exact(d time.Duration) string {
	if text := config.FormatDuration(d); d < time.Minute || d%time.Second == 0 {
		return text
	}
	return d.String()
}

// rule says in words what fires a threshold.
func rule(t client.Threshold) string {
	drops := t.OnTimeout == client.TimeoutDrops
	out := count(t.Count, "hit")
	switch {
	case t.Debounce == 0 && drops:
		out += " within " + exact(t.Within)
	case t.Debounce == 0:
		out += " or " + exact(t.Within)
	case drops:
		out += " within " + exact(t.Debounce) + " of each other, " + exact(t.MaxWait) + " in all"
	default:
		out += " or " + exact(t.Debounce) + " without one, " + exact(t.MaxWait) + " at most"
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
