package web

import (
	"net/http"
	"strings"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

type tasksView struct {
	layout
	Tasks []view.Task
}

func (*tasksView) name() string { return "tasks" }

func (s *Server) tasksPage(r *http.Request) (content, error) {
	o, err := s.overview(r.Context())
	if err != nil {
		return nil, err
	}
	return &tasksView{layout{Title: "Tasks", Live: true}, o.Tasks}, nil
}

func (s *Server) pauseForm(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.cfg.Client.Pause(r.Context(), r.PathValue("task")); err != nil {
		return err
	}
	return back(w, r, "/tasks", "paused")
}

func (s *Server) resumeForm(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.cfg.Client.Resume(r.Context(), r.PathValue("task")); err != nil {
		return err
	}
	return back(w, r, "/tasks", "resumed")
}

type thresholdsView struct {
	layout
	Thresholds []thresholdRow
}

func (*thresholdsView) name() string { return "thresholds" }

type thresholdRow struct {
	client.ThresholdInfo
	Rule    string
	Pattern bool
	Prefix  string // of the ids that a pattern matches
	Fired   []firedRow
}

type firedRow struct {
	client.Fired
	Of string // the counter, if it is not the definition's id
}

// shownFirings is how many of a threshold's last firings the page shows.
const shownFirings = 3

func thresholdRowOf(info client.ThresholdInfo) thresholdRow {
	prefix, _, pattern := strings.Cut(info.ID, "*")
	row := thresholdRow{ThresholdInfo: info, Rule: view.Rule(info.Threshold), Pattern: pattern, Prefix: prefix}
	for _, f := range info.Fired[:min(len(info.Fired), shownFirings)] {
		fired := firedRow{Fired: f}
		if f.ID != info.ID {
			fired.Of = f.ID
		}
		row.Fired = append(row.Fired, fired)
	}
	return row
}

func (s *Server) thresholdsPage(r *http.Request) (content, error) {
	infos, err := s.readable(r)
	if err != nil {
		return nil, err
	}
	p := &thresholdsView{layout: layout{Title: "Thresholds", Live: true}}
	for _, info := range infos {
		p.Thresholds = append(p.Thresholds, thresholdRowOf(info))
	}
	return p, nil
}
