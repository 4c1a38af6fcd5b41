package main

import (
	"strconv"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// scheduledJSON tells of the replicas only where some were waited for.
func (s *session) scheduledJSON(made client.Scheduled) view.Job {
	return view.ScheduledOf(made, s.cfg.Redis.WaitReplicas > 0)
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
	decoded, err := view.DecodeBase64(s, what)
	if err != nil {
		return "", usagef("%w", err)
	}
	return decoded, nil
}

// printJob shows all of a job for people.
func (a *app) printJob(j client.Job, now time.Time) error {
	t := newTable(a.stdout, "id", view.Printable(j.ID))
	t.row("task", view.Printable(j.Task))
	t.row("state", stateText(j))
	t.row("due", when(j.Due, now))
	if j.Window != nil {
		t.row("window", view.WindowText(j.Window))
		t.row("opened", when(j.Window.Start, now))
	}
	if len(j.Payload) > 0 {
		t.row("payload", view.Clip(string(j.Payload), 2000))
	}
	rowsOfRun(t, j, now)
	if j.LastError != "" {
		t.row("last error", view.Clip(j.LastError, 2000))
	}
	return t.end()
}

func rowsOfRun(t table, j client.Job, now time.Time) {
	switch j.State {
	case client.Running:
		if !j.At.IsZero() { // only a list knows
			t.row("started", when(j.At, now))
		}
		t.row("node", view.Printable(j.Node))
	case client.Retrying:
		t.row("next attempt", when(j.At, now))
	case client.Dead:
		t.row("died", when(j.At, now))
	case client.Pending:
		return
	}
	t.row("run", view.Printable(j.RunID))
	t.row("attempt", strconv.Itoa(j.Attempt))
	fired := view.Printable(j.Reason)
	if j.Trigger() == "threshold" {
		fired += ", " + view.Count(j.Count, "hit")
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
