package view

import (
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
)

// Definition is the definition of a threshold.
type Definition struct {
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

	Defined string `json:"defined,omitempty"` // when it was defined: new, replaced or same
}

// Threshold is a definition and what happens under it.
type Threshold struct {
	Definition
	Open        int64   `json:"open"`             // windows
	Window      *Window `json:"window,omitempty"` // the open one, unless it is a pattern
	LastFirings []Fired `json:"last_firings"`     // the latest first
}

// Window is an open window.
type Window struct {
	Count     int64  `json:"count"`
	Threshold int64  `json:"threshold"`
	Started   string `json:"started"`
	Ends      string `json:"ends"`
	Items     int    `json:"items"`
	Fired     bool   `json:"fired"` // mode once
}

// Fired is a firing of a threshold.
type Fired struct {
	At       string `json:"at"`
	Reason   string `json:"reason"`
	Count    int64  `json:"count"`
	ID       string `json:"id,omitempty"`
	IDBase64 string `json:"id_base64,omitempty"`
}

// DefinitionOf is a definition in JSON.
func DefinitionOf(t client.Threshold) Definition {
	out := Definition{
		Task: t.Task, Count: t.Count, Within: Exact(t.Within), OnTimeout: string(t.OnTimeout), Mode: string(t.Mode),
		MaxItems: t.MaxItems, MaxBytes: t.MaxBytes,
	}
	if t.Debounce > 0 {
		out.Debounce, out.MaxWait = Exact(t.Debounce), Exact(t.MaxWait)
	}
	out.ID, out.IDBase64 = TextOrBase64(t.ID)
	out.Payload, out.PayloadBase64 = TextOrBase64(string(t.Payload))
	return out
}

// DefinedOf is a definition in JSON, and what became of it.
func DefinedOf(t client.Threshold, outcome client.Defined) Definition {
	out := DefinitionOf(t)
	switch outcome {
	case client.DefinedReplaced:
		out.Defined = "replaced"
	case client.DefinedSame:
		out.Defined = "same"
	default:
		out.Defined = "new"
	}
	return out
}

// ThresholdOf is a threshold in JSON.
func ThresholdOf(info client.ThresholdInfo) Threshold {
	out := Threshold{Definition: DefinitionOf(info.Threshold), Open: info.Open, LastFirings: []Fired{}}
	if w := info.Window; w != nil {
		out.Window = &Window{w.Count, w.Threshold, Stamp(w.Start), Stamp(w.End), w.Items, w.Fired}
	}
	for _, f := range info.Fired {
		fired := Fired{At: Stamp(f.At), Reason: f.Reason, Count: f.Count}
		fired.ID, fired.IDBase64 = TextOrBase64(f.ID)
		out.LastFirings = append(out.LastFirings, fired)
	}
	return out
}

// Exact is a duration to the millisecond, as config.ParseDuration reads it.
func Exact(d time.Duration) string {
	if text := config.FormatDuration(d); d < time.Minute || d%time.Second == 0 {
		return text
	}
	return d.String()
}

// Hit is what a hit did.
type Hit struct {
	ID         string `json:"id,omitempty"`
	IDBase64   string `json:"id_base64,omitempty"`
	Count      int64  `json:"count"`
	Threshold  int64  `json:"threshold"`
	Fired      bool   `json:"fired"`
	WindowEnds string `json:"window_ends"`
}

// HitOf is what a hit did, in JSON.
func HitOf(c client.Counted) Hit {
	out := Hit{Count: c.Count, Threshold: c.Threshold, Fired: c.Fired, WindowEnds: Stamp(c.Ends)}
	out.ID, out.IDBase64 = TextOrBase64(c.ID)
	return out
}

// Removed is the answer for a threshold that was removed.
type Removed struct {
	ID       string `json:"id,omitempty"`
	IDBase64 string `json:"id_base64,omitempty"`
	Removed  bool   `json:"removed"`
	Open     int64  `json:"open"` // windows, which end as they would have
}

// RemovedOf is that answer.
func RemovedOf(id string, open int64) Removed {
	out := Removed{Removed: true, Open: open}
	out.ID, out.IDBase64 = TextOrBase64(id)
	return out
}
