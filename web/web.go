// Package web is the daemon's HTTP side: an API to schedule and look after jobs, the
// dashboard, health checks and metrics.
//
// What it promises:
//
//   - Whoever can reach the port may do no more than that: with a token set, nothing
//     but the health checks answers without it; without one, only names of this
//     machine are answered to, so that no web page can be made to talk to it.
//   - An error is a problem document (RFC 9457) that says what is wrong and what to do.
//   - A POST with an Idempotency-Key is done once, however often it is sent, unless
//     Redis failed or a daemon died meanwhile: docs/http.md says what holds then.
//   - Field names are those of `keyfuse -o json`; openapi.yaml has all of it.
//   - No id, payload or secret of a request is logged.
//   - Nothing here is in the way of a job: all of it reads what the daemon keeps in
//     Redis, by a few commands a request, however many jobs there are.
package web

import (
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// Config is what the server works on.
type Config struct {
	Client *client.Client
	// Redis is asked for its clock, its health, and what idempotency keys have done.
	Redis redis.UniversalClient
	// Token is what requests must bear. Empty means that none is needed: that will do
	// only where nobody but this machine can reach the listener.
	Token string
	// IDPrefix is what ids must begin with; those that are made here do.
	IDPrefix string
	// MaxPayload is the longest payload in bytes, which bounds what is read of a request.
	MaxPayload int64
	// Replicas says that scheduling waits for some, which answers then tell of.
	Replicas bool
	// Trace says that a job which is sent with a traceparent header gets that. Programs
	// send one without being asked, so this is off by default.
	Trace bool
	// Status is what /readyz tells; see NewStatus.
	Status *Status
	// History is what the dashboard's charts show; see NewHistory.
	History *History
	// Metrics answers /metrics; nil means that there is none.
	Metrics http.Handler
	// Log gets a line a request at debug, and failures of the server itself.
	Log *slog.Logger
}

// Server answers requests.
type Server struct {
	cfg       Config
	auth      auth
	templates map[string]*template.Template
	bulks     chan struct{} // holds a value for each that is under way
	streams   chan struct{} // and for each page that is followed
	closing   chan struct{} // closed when those are to end
	endOnce   sync.Once
	handler   http.Handler
}

// New makes a server. Errors are mistakes in cfg.
func New(cfg Config) (*Server, error) {
	if cfg.Client == nil || cfg.Redis == nil || cfg.Status == nil || cfg.History == nil || cfg.Log == nil {
		return nil, errors.New("web: Client, Redis, Status, History and Log must be given")
	}
	templates, err := parseTemplates()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, auth: newAuth(cfg.Token), templates: templates, bulks: make(chan struct{}, maxBulks), streams: make(chan struct{}, maxStreams), closing: make(chan struct{})}
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.pattern, s.wrap(r))
	}
	s.handler = s.guard(mux)
	return s, nil
}

// endStreams ends what would go on for ever.
func (s *Server) endStreams() { s.endOnce.Do(func() { close(s.closing) }) }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
