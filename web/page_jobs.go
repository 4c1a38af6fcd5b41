package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// pageJobs is how many jobs a page of the dashboard shows.
const pageJobs = 50

type jobsView struct {
	layout
	Filter      client.Filter
	States      []choice
	Tasks       []choice
	When, Tells string // heads of columns
	Jobs        []jobRow
	Next, None  string
	All         string // dead letters: what "all" are; empty if a prefix chooses them
	template    string
}

func (p *jobsView) name() string { return p.template }

type choice struct {
	Name   string
	Chosen bool
}

type jobRow struct {
	ID, Task, Tells string
	State           string // if it is not the list's
	Time            time.Time
	Attempt         int
	Waits           bool   // it can be cancelled and fired
	Field           string // its run in a form: the id may have other dead letters
}

func (s *Server) jobsPage(r *http.Request) (content, error) {
	q := r.URL.Query()
	f := client.Filter{State: client.State(q.Get("state")), Task: q.Get("task"), Prefix: q.Get("prefix")}
	if f.State == "" {
		f.State = client.Pending
	}
	if !slices.Contains(states, f.State) {
		return nil, unknownState(f.State)
	}
	p, err := s.listPage(r, f, "jobs")
	if err != nil {
		return nil, err
	}
	p.Title = "Jobs"
	p.When, p.Tells = columns(f.State)
	for _, state := range states {
		p.States = append(p.States, choice{string(state), state == f.State})
	}
	for i := range p.Jobs {
		if p.Jobs[i].State == string(f.State) {
			p.Jobs[i].State = ""
		}
	}
	p.None = "No " + string(f.State) + " jobs"
	if p.Next != "" {
		p.None += " among the first thousands"
	}
	return p, nil
}

// listPage lists the jobs of a filter. What people search for is mostly an id: what is
// held of exactly that one comes first, whatever its state, unless only dead letters are
// wanted.
func (s *Server) listPage(r *http.Request, f client.Filter, template string) (*jobsView, error) {
	page, err := s.cfg.Client.List(r.Context(), f, r.URL.Query().Get("cursor"), pageJobs)
	if err != nil {
		return nil, err
	}
	stats, err := s.cfg.Client.Stats(r.Context())
	if err != nil {
		return nil, err
	}
	p := &jobsView{layout: layout{Live: true}, Filter: f, template: template}
	for _, t := range stats.Tasks {
		p.Tasks = append(p.Tasks, choice{t.Task, t.Task == f.Task})
	}
	exact, err := s.exactly(r, f)
	if err != nil {
		return nil, err
	}
	for _, job := range exact {
		p.Jobs = append(p.Jobs, rowOf(job))
	}
	for _, job := range page.Jobs {
		if len(exact) == 0 || job.ID != f.Prefix {
			p.Jobs = append(p.Jobs, rowOf(job))
		}
	}
	if page.Next != "" {
		q := r.URL.Query()
		q.Set("cursor", page.Next)
		p.Next = r.URL.Path + "?" + q.Encode()
	}
	return p, nil
}

// exactly are the jobs and runs of the id that the first page of a filter asks for.
func (s *Server) exactly(r *http.Request, f client.Filter) ([]client.Job, error) {
	if f.Prefix == "" || r.URL.Query().Get("cursor") != "" {
		return nil, nil
	}
	jobs, err := s.cfg.Client.Get(r.Context(), f.Prefix)
	if errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrInvalid) {
		return nil, nil
	}
	return slices.DeleteFunc(jobs, func(job client.Job) bool {
		return f.Task != "" && job.Task != f.Task || f.State == client.Dead && job.State != client.Dead
	}), err
}

func columns(state client.State) (when, tells string) {
	switch state {
	case client.Running:
		return "Started", "Node"
	case client.Retrying:
		return "Next attempt", "Last error"
	case client.Dead:
		return "Died", "Last error"
	case client.Pending:
	}
	return "Due", "Payload"
}

// clipped is how much of a text a row shows, in characters.
const clipped = 120

func rowOf(job client.Job) jobRow {
	row := jobRow{ID: job.ID, Task: job.Task, State: string(job.State), Time: job.At, Attempt: job.Attempt, Field: fieldOf(job.RunID), Waits: job.State == client.Pending || job.State == client.Retrying}
	switch job.State {
	case client.Running:
		row.Tells = job.Node
	case client.Retrying, client.Dead:
		row.Tells = view.Clip(job.LastError, clipped)
	case client.Pending:
		row.Time, row.Tells = job.Due, view.Clip(string(job.Payload), clipped)
		if job.Window != nil {
			row.Tells = view.WindowText(job.Window)
		}
	}
	return row
}

// fieldOf is the id of a run in a form; somebody may have made it of any bytes.
func fieldOf(run string) string { return base64.RawURLEncoding.EncodeToString([]byte(run)) }

func runOfField(field string) (string, error) {
	run, err := base64.RawURLEncoding.DecodeString(field)
	if err != nil || len(run) == 0 {
		return "", invalid("the form names no run: load the page again")
	}
	return string(run), nil
}

type jobView struct {
	layout
	ID        string
	Runs      []runCard
	Threshold *thresholdRow
}

func (*jobView) name() string { return "job" }

type runCard struct {
	State, Task, Window, RunID, Node, FiredBy, LastError, Payload, Cut, AtName string
	Field                                                                      string // see jobRow
	Attempt                                                                    int
	Due, At                                                                    time.Time
	Waits                                                                      bool
}

func (s *Server) jobPage(r *http.Request) (content, error) {
	id := r.PathValue("id")
	jobs, threshold, err := view.Find(r.Context(), s.cfg.Client, id)
	if errors.Is(err, client.ErrNotFound) && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return &jobView{layout: layout{Title: view.Printable(id), Live: true}, ID: id, Runs: []runCard{{State: "gone", Task: "has run or was cancelled"}}}, nil
	}
	if err != nil {
		return nil, err
	}
	p := &jobView{layout: layout{Title: view.Printable(id), Live: true}, ID: id}
	for _, job := range jobs {
		p.Runs = append(p.Runs, cardOf(job))
	}
	if threshold != nil {
		row := thresholdRowOf(*threshold)
		p.Threshold = &row
	}
	return p, nil
}

// shownPayload is how much of a payload a page shows, in bytes.
const shownPayload = 64 << 10

func cardOf(job client.Job) runCard {
	c := runCard{
		State: string(job.State), Task: job.Task, RunID: job.RunID, Field: fieldOf(job.RunID), Node: job.Node, Attempt: job.Attempt, Due: job.Due, At: job.At,
		LastError: strings.ToValidUTF8(job.LastError, "\ufffd"), Waits: job.State == client.Pending || job.State == client.Retrying,
	}
	c.Payload, c.Cut = pretty(job.Payload)
	if job.Window != nil {
		c.Window = view.WindowText(job.Window)
	}
	if job.Reason != "" {
		c.FiredBy = job.Reason
		if job.Count > 0 {
			c.FiredBy += ", with " + thousands(job.Count) + " hits"
		}
	}
	switch {
	case job.At.IsZero():
	case job.State == client.Running:
		c.AtName = "Started"
	case job.State == client.Retrying:
		c.AtName = "Next attempt"
	case job.State == client.Dead:
		c.AtName = "Died"
	}
	return c
}

// pretty is a payload for people: JSON with its lines, other text as it is, and bytes in
// base64; cut says what was left out.
func pretty(payload []byte) (text, cut string) {
	if len(payload) > shownPayload {
		cut = "The first " + view.Bytes(shownPayload) + " of " + view.Bytes(int64(len(payload))) + "; the API has all of it."
		payload = payload[:shownPayload]
	}
	var lines bytes.Buffer
	switch {
	case cut == "" && json.Valid(payload) && json.Indent(&lines, payload, "", "  ") == nil:
		return lines.String(), cut
	case utf8.Valid(whole(payload, cut)):
		return string(whole(payload, cut)), cut
	}
	return "base64: " + base64.StdEncoding.EncodeToString(payload), cut
}

// whole is a text without the character that a cut left a part of.
func whole(text []byte, cut string) []byte {
	for n := 1; cut != "" && n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return text[:len(text)-n]
		}
	}
	return text
}

func (s *Server) cancelForm(w http.ResponseWriter, r *http.Request) error {
	if err := s.cfg.Client.Cancel(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return back(w, r, "/jobs", "cancelled")
}

func (s *Server) fireForm(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.cfg.Client.Fire(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return back(w, r, "/jobs", "fired")
}

func (s *Server) rescheduleForm(w http.ResponseWriter, r *http.Request) error {
	text := r.PostFormValue("in")
	in, _, err := view.ParseWhen(&text, nil, time.UTC)
	if err != nil {
		return invalid("%w", err)
	}
	id := r.PathValue("id")
	if _, err := s.cfg.Client.Reschedule(r.Context(), id, in, time.Time{}); err != nil {
		return err
	}
	return back(w, r, "/jobs/"+url.PathEscape(id), "rescheduled")
}
