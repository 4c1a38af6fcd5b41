package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Status is what the daemon knows of itself. Its functions are for an
// engine.Observer.
type Status struct {
	mu       sync.Mutex
	ready    bool
	stopping bool
	degraded string
}

// NewStatus makes one that is not ready.
func NewStatus() *Status { return &Status{} }

// Ready notes that the engine has subscribed and made its first claim.
func (s *Status) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

// Stop notes that the daemon shuts down.
func (s *Status) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

// Degraded notes why no events come; "" if they do.
func (s *Status) Degraded(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.degraded = why
}

// why it is not ready; "" if it is.
func (s *Status) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return "it shuts down"
	case !s.ready:
		return "it has not subscribed and made its first claim yet"
	}
	return ""
}

func (s *Status) deaf() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.degraded
}

// healthBody is what the health checks answer.
type healthBody struct {
	Status   string `json:"status"`             // ok or unavailable
	Why      string `json:"why,omitempty"`      // it is unavailable
	Degraded string `json:"degraded,omitempty"` // no events come: jobs in the index run on time, bare ones are found by the sweep
}

// livez says that the process answers.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, healthBody{Status: "ok"})
}

// pingPatience is how long Redis may take to answer for the daemon to be ready.
const pingPatience = time.Second

// readyz says that the engine is at work and that Redis answers. Why not is told in
// words without addresses, for anybody may ask.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	body := healthBody{Status: "unavailable", Why: s.cfg.Status.why()}
	if body.Why == "" && !s.answers(r.Context()) {
		body.Why = "Redis does not answer"
	}
	if body.Why != "" {
		return writeJSON(w, http.StatusServiceUnavailable, body)
	}
	body.Status = "ok"
	if s.cfg.Status.deaf() != "" {
		body.Degraded = "no events come"
	}
	return writeJSON(w, http.StatusOK, body)
}

func (s *Server) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	return s.cfg.Redis.Ping(ctx).Err() == nil
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return problem{Type: "no-route", Status: http.StatusNotFound, Title: "there are no metrics here"}
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}
