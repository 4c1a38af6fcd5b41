package web

import (
	"context"
	"net/http"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (s *Server) overview(ctx context.Context) (view.Overview, error) {
	stats, err := s.cfg.Client.Stats(ctx)
	if err != nil {
		return view.Overview{}, err
	}
	now, err := s.cfg.Redis.Time(ctx).Result()
	if err != nil {
		return view.Overview{}, err
	}
	return view.OverviewOf(stats, now), nil
}

func (s *Server) listTasks(w http.ResponseWriter, r *http.Request) error {
	o, err := s.overview(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string][]view.Task{"tasks": o.Tasks})
}

func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) error {
	o, err := s.overview(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string][]view.Node{"nodes": o.Nodes})
}

func (s *Server) stats(w http.ResponseWriter, r *http.Request) error {
	o, err := s.overview(r.Context())
	if err != nil {
		return err
	}
	thresholds, err := s.thresholds(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.Stats{Overview: o, Thresholds: thresholds, Redis: view.AskRedis(r.Context(), s.cfg.Redis)})
}

// switched is the answer to pause and resume.
type switched struct {
	Task    string `json:"task"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"`
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request) error {
	return s.turn(w, r, true, (*client.Client).Pause)
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	return s.turn(w, r, false, (*client.Client).Resume)
}

func (s *Server) turn(w http.ResponseWriter, r *http.Request, paused bool, change func(*client.Client, context.Context, string) (bool, error)) error {
	task := r.PathValue("task")
	changed, err := change(s.cfg.Client, r.Context(), task)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, switched{task, paused, changed})
}
