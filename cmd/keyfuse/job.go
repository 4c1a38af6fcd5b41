package main

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/client"
)

// jobJSON is a job in JSON. Fields that are empty are left out; ids and
// payloads that are no UTF-8 are in base64.
type jobJSON struct {
	ID            string `json:"id,omitempty"`
	IDBase64      string `json:"id_base64,omitempty"`
	Task          string `json:"task,omitempty"`
	State         string `json:"state,omitempty"`
	Due           string `json:"due,omitempty"`
	Payload       string `json:"payload,omitempty"`
	PayloadBase64 string `json:"payload_base64,omitempty"`
	Attempt       int    `json:"attempt,omitempty"`
	LastError     string `json:"last_error,omitempty"`
	RunID         string `json:"run_id,omitempty"`
	Node          string `json:"node,omitempty"`
	Trigger       string `json:"trigger,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Started       string `json:"started,omitempty"`      // running: when it was claimed
	NextAttempt   string `json:"next_attempt,omitempty"` // retrying
	Died          string `json:"died,omitempty"`         // dead

	// What follows is of thresholds.
	Count         *int64         `json:"count,omitempty"` // hits: so far of an open window, or of the one that fired the run
	Threshold     int64          `json:"threshold,omitempty"`
	WindowStarted string         `json:"window_started,omitempty"`
	Items         int            `json:"items,omitempty"`
	Fired         bool           `json:"fired,omitempty"`      // mode once: the window has fired, and ends at due
	Definition    *thresholdJSON `json:"definition,omitempty"` // show: of the id or its open window

	Replaced bool `json:"replaced,omitempty"` // schedule: it took another's place
	Kept     bool `json:"kept,omitempty"`     // schedule: it was there before
	Replicas *int `json:"replicas,omitempty"` // schedule: how many have it, if some were waited for

	Runs []jobJSON `json:"runs,omitempty"` // show: earlier firings that are still held
}

func jsonOf(j client.Job) jobJSON {
	out := jobJSON{
		Task: j.Task, State: string(j.State), Due: stamp(j.Due), Attempt: j.Attempt,
		LastError: strings.ToValidUTF8(j.LastError, "\ufffd"),
		RunID:     j.RunID, Node: j.Node, Trigger: j.Trigger(), Reason: j.Reason,
	}
	out.ID, out.IDBase64 = textOrBase64(j.ID)
	out.Payload, out.PayloadBase64 = textOrBase64(string(j.Payload))
	switch j.State {
	case client.Running:
		out.Started = stamp(j.At)
	case client.Retrying:
		out.NextAttempt = stamp(j.At)
	case client.Dead:
		out.Died = stamp(j.At)
	case client.Pending:
	}
	if w := j.Window; w != nil {
		out.Count, out.Threshold, out.WindowStarted, out.Items, out.Fired = &w.Count, w.Threshold, stamp(w.Start), w.Items, w.Fired
	} else if out.Trigger == "threshold" {
		out.Count = &j.Count
	}
	return out
}

// scheduledJSON tells of the replicas only where some were waited for.
func (s *session) scheduledJSON(made client.Scheduled) jobJSON {
	out := jsonOf(made.Job)
	out.Replaced, out.Kept = made.Replaced, made.Kept
	if s.cfg.Redis.WaitReplicas > 0 {
		out.Replicas = &made.Replicas
	}
	return out
}

func textOrBase64(s string) (text, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

// id reads an id from the command line.
func (a *app) id(arg string) (string, error) {
	if !a.flags.idBase64 {
		return arg, nil
	}
	return decodeBase64(arg, "the id")
}

func (a *app) ids(args []string) ([]string, error) {
	ids := make([]string, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = a.id(arg); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func decodeBase64(s, what string) (string, error) {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return "", usagef("%s is no base64: %q", what, s)
	}
	return string(decoded), nil
}

// printJob shows all of a job for people.
func (a *app) printJob(j client.Job, now time.Time) error {
	t := newTable(a.stdout, "id", printable(j.ID))
	t.row("task", printable(j.Task))
	t.row("state", stateText(j))
	t.row("due", when(j.Due, now))
	if j.Window != nil {
		t.row("window", windowText(j.Window))
		t.row("opened", when(j.Window.Start, now))
	}
	if len(j.Payload) > 0 {
		t.row("payload", clip(string(j.Payload), 2000))
	}
	rowsOfRun(t, j, now)
	if j.LastError != "" {
		t.row("last error", clip(j.LastError, 2000))
	}
	return t.end()
}

func rowsOfRun(t table, j client.Job, now time.Time) {
	switch j.State {
	case client.Running:
		if !j.At.IsZero() { // only a list knows
			t.row("started", when(j.At, now))
		}
		t.row("node", printable(j.Node))
	case client.Retrying:
		t.row("next attempt", when(j.At, now))
	case client.Dead:
		t.row("died", when(j.At, now))
	case client.Pending:
		return
	}
	t.row("run", printable(j.RunID))
	t.row("attempt", strconv.Itoa(j.Attempt))
	fired := printable(j.Reason)
	if j.Trigger() == "threshold" {
		fired += ", " + count(j.Count, "hit")
	}
	t.row("fired by", fired)
}

// unclaimed is what is told of a run that no node has claimed since it was fired,
// requeued or given back.
const unclaimed = "fired, waits to be claimed"

func isUnclaimed(j client.Job) bool { return j.State == client.Retrying && j.Attempt == 0 }

func stateText(j client.Job) string {
	switch {
	case isUnclaimed(j):
		return string(j.State) + ": " + unclaimed
	case j.Window != nil && j.Window.Fired:
		return string(j.State) + ": has fired, and counts on until it ends"
	case j.Window != nil:
		return string(j.State) + ": counts hits"
	}
	return string(j.State)
}
