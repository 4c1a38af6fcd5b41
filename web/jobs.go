package web

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "state", "task", "prefix", "cursor", "limit"); err != nil {
		return err
	}
	q := r.URL.Query()
	f := client.Filter{State: client.State(q.Get("state")), Task: q.Get("task"), Prefix: q.Get("prefix")}
	if f.State != "" && !slices.Contains(states, f.State) {
		return unknownState(f.State)
	}
	page, err := s.page(r, f)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, jobsPage{page.jobs(), page.Next})
}

var states = []client.State{client.Pending, client.Running, client.Retrying, client.Dead}

func unknownState(state client.State) error {
	return invalid("state is %q, want pending, running, retrying or dead", state)
}

// jobsPage is a page of a list.
type jobsPage struct {
	Jobs []view.Job `json:"jobs"`
	Next string     `json:"next_cursor,omitempty"` // empty behind the last one
}

type page struct{ client.Page }

func (s *Server) page(r *http.Request, f client.Filter) (page, error) {
	limit, err := limitOf(r)
	if err != nil {
		return page{}, err
	}
	p, err := s.cfg.Client.List(r.Context(), f, r.URL.Query().Get("cursor"), limit)
	return page{p}, err
}

func (p page) jobs() []view.Job {
	jobs := make([]view.Job, 0, len(p.Jobs))
	for _, job := range p.Jobs {
		jobs = append(jobs, view.JobOf(job))
	}
	return jobs
}

func (s *Server) showJob(w http.ResponseWriter, r *http.Request) error {
	jobs, threshold, err := view.Find(r.Context(), s.cfg.Client, r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.Whole(jobs, threshold))
}

// when is a new due time: one of the two.
type when struct {
	In *string `json:"in"`
	At *string `json:"at"`
}

func (t when) read() (time.Duration, time.Time, error) {
	if (t.In == nil) == (t.At == nil) {
		return 0, time.Time{}, invalid(`say when, with one of "in" and "at"`)
	}
	in, at, err := view.ParseWhen(t.In, t.At, time.UTC)
	if err != nil {
		return 0, at, invalid("%w", err)
	}
	return in, at, nil
}

func (s *Server) rescheduleJob(w http.ResponseWriter, r *http.Request) error {
	var t when
	if err := readJSON(r, &t, "a new due time", false); err != nil {
		return err
	}
	in, at, err := t.read()
	if err != nil {
		return err
	}
	job, err := s.cfg.Client.Reschedule(r.Context(), r.PathValue("id"), in, at)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.MovedOf(job))
}

func (s *Server) fireJob(w http.ResponseWriter, r *http.Request) error {
	job, err := s.cfg.Client.Fire(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.MovedOf(job))
}

func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := s.cfg.Client.Cancel(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.CancelledOf(id))
}

// pathOf is where a job is shown by the API.
func pathOf(id string) string { return "/v1/jobs/" + url.PathEscape(id) }
