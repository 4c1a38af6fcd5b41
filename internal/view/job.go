package view

import (
	"context"
	"errors"
	"strings"

	"github.com/keyfuse-io/keyfuse/client"
)

// Job is a job, or one run of it.
type Job struct {
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
	Traceparent   string `json:"traceparent,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Started       string `json:"started,omitempty"`      // running: when it was claimed
	NextAttempt   string `json:"next_attempt,omitempty"` // retrying
	Died          string `json:"died,omitempty"`         // dead

	// What follows is of thresholds.
	Count         *int64     `json:"count,omitempty"` // hits: so far of an open window, or of the one that fired the run
	Threshold     int64      `json:"threshold,omitempty"`
	WindowStarted string     `json:"window_started,omitempty"`
	Items         int        `json:"items,omitempty"`
	Fired         bool       `json:"fired,omitempty"`      // mode once: the window has fired, and ends at due
	Definition    *Threshold `json:"definition,omitempty"` // of the id or its open window, where one job is shown

	Replaced bool `json:"replaced,omitempty"` // scheduled: it took another's place
	Kept     bool `json:"kept,omitempty"`     // scheduled: it was there before
	Replicas *int `json:"replicas,omitempty"` // scheduled: how many have it, if some were waited for

	Runs []Job `json:"runs,omitempty"` // earlier firings that are still held, where one job is shown
}

// JobOf is a job in JSON.
func JobOf(j client.Job) Job {
	out := Job{
		Task: j.Task, State: string(j.State), Due: Stamp(j.Due), Attempt: j.Attempt,
		LastError: strings.ToValidUTF8(j.LastError, "\ufffd"),
		RunID:     j.RunID, Node: j.Node, Trigger: j.Trigger(), Traceparent: j.Trace, Reason: j.Reason,
	}
	out.ID, out.IDBase64 = TextOrBase64(j.ID)
	out.Payload, out.PayloadBase64 = TextOrBase64(string(j.Payload))
	switch j.State {
	case client.Running:
		out.Started = Stamp(j.At)
	case client.Retrying:
		out.NextAttempt = Stamp(j.At)
	case client.Dead:
		out.Died = Stamp(j.At)
	case client.Pending:
	}
	if w := j.Window; w != nil {
		out.Count, out.Threshold, out.WindowStarted, out.Items, out.Fired = &w.Count, w.Threshold, Stamp(w.Start), w.Items, w.Fired
	} else if out.Trigger == "threshold" {
		out.Count = &j.Count
	}
	return out
}

// ScheduledOf is a job that was scheduled, in JSON. It tells of replicas only if
// some were waited for.
func ScheduledOf(made client.Scheduled, waited bool) Job {
	out := JobOf(made.Job)
	out.Replaced, out.Kept = made.Replaced, made.Kept
	if waited {
		out.Replicas = &made.Replicas
	}
	return out
}

// MovedOf is a job that was rescheduled or fired, in JSON: what fired a run that is
// moved is not told.
func MovedOf(job client.Job) Job {
	out := JobOf(job)
	if job.RunID != "" && job.Count == 0 {
		out.Trigger = ""
	}
	return out
}

// Find is all that is held of an id: jobs and runs, and the threshold that counts under
// it, nil if none does. client.ErrNotFound if there is none of that.
func Find(ctx context.Context, c *client.Client, id string) ([]client.Job, *client.ThresholdInfo, error) {
	jobs, err := c.Get(ctx, id)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, nil, err
	}
	if len(jobs) > 0 && jobs[0].Window != nil {
		id = jobs[0].Window.Definition
	}
	threshold, noThreshold := c.Threshold(ctx, id)
	switch {
	case noThreshold == nil:
		return jobs, &threshold, nil
	case errors.Is(noThreshold, client.ErrNoThreshold):
		return jobs, nil, err
	}
	return nil, nil, noThreshold
}

// Whole is a job with its other runs and its definition, or a definition alone.
// threshold is nil if there is none.
func Whole(jobs []client.Job, threshold *client.ThresholdInfo) Job {
	var out Job
	if len(jobs) > 0 {
		out = JobOf(jobs[0])
		for _, run := range jobs[1:] {
			out.Runs = append(out.Runs, JobOf(run))
		}
	}
	if threshold == nil {
		return out
	}
	def := ThresholdOf(*threshold)
	if out.Definition = &def; len(jobs) == 0 {
		out.ID, out.IDBase64, out.Task, out.Trigger = def.ID, def.IDBase64, def.Task, "threshold"
	}
	return out
}

// Cancelled is the answer for an id that was cancelled.
type Cancelled struct {
	ID        string `json:"id,omitempty"`
	IDBase64  string `json:"id_base64,omitempty"`
	Cancelled bool   `json:"cancelled"`
}

// CancelledOf is that answer.
func CancelledOf(id string) Cancelled {
	out := Cancelled{Cancelled: true}
	out.ID, out.IDBase64 = TextOrBase64(id)
	return out
}
