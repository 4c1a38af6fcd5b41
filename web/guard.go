package web

import (
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

// route is one method and path, and who answers. Handlers return what went wrong;
// nobody else writes problems.
type route struct {
	pattern string // of http.ServeMux
	handle  handler
	access  access
	limit   int64 // of the body in bytes; zero means none may come
	once    bool  // it honours an Idempotency-Key
	long    bool  // it may take longer than a request usually does
}

type handler func(w http.ResponseWriter, r *http.Request) error

// access says who may call.
type access int

const (
	forToken  access = iota // who bears the token
	forPeople               // that, or a browser that has logged in; others are sent to log in
	forAll
)

// wrap is what happens around a handler of a route that was found.
func (s *Server) wrap(rt route) http.Handler {
	handle := rt.handle
	if rt.once {
		handle = s.once(handle)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.auth.allows(r, rt.access) {
			s.refuse(w, r, rt.access)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, rt.limit)
		if rt.long {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(longTimeout)) // else the usual one holds
		}
		switch err := handle(w, r); {
		case err == nil:
		case rt.access == forPeople:
			s.failPage(w, r, err)
		default:
			s.fail(w, r, err)
		}
	})
}

var crossOrigin = problem{
	Type: "cross-origin", Status: http.StatusForbidden, Title: "another site sent this",
	Detail: "a browser says that this request comes from a page of another site",
}

// guard is what happens around all routes.
func (s *Server) guard(mux *http.ServeMux) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, crossOrigin)
	}))
	inner := cross.Handler(s.unrouted(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		secure(w.Header())
		seen := &watched{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // a value, not an error of a call
					panic(p)
				}
				s.cfg.Log.Error("a request's handler panicked", "route", r.Pattern, "panic", p, "stack", string(debug.Stack()))
				if seen.status == 0 {
					writeProblem(seen, problem{Type: "internal", Status: http.StatusInternalServerError, Title: "this is a bug of Keyfuse", Detail: "the daemon's log says where"})
				}
			}
			s.cfg.Log.Debug("http", "method", r.Method, "route", r.Pattern, "status", seen.status, "took", time.Since(begun).Round(time.Microsecond))
		}()
		if !s.auth.isOn() && !namesThisMachine(r.Host) {
			writeProblem(seen, problem{
				Type: "host", Status: http.StatusForbidden, Title: "this is not the name of this machine",
				Detail: fmt.Sprintf("without a token only localhost and its addresses are answered to, not %q: set http.token", r.Host),
			})
			return
		}
		inner.ServeHTTP(seen, r)
	})
}

// unrouted answers with problems where the mux would with plain text.
func (s *Server) unrouted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			// It knows whether the method alone is wrong.
			probe := &statusOnly{header: http.Header{}}
			mux.ServeHTTP(probe, r)
			p := problem{Type: "no-route", Status: http.StatusNotFound, Title: "there is nothing here", Detail: "the API is described at /v1/openapi.yaml"}
			if probe.status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", probe.header.Get("Allow"))
				p = problem{Type: "method", Status: probe.status, Title: "not this method", Detail: "allowed here: " + probe.header.Get("Allow")}
			}
			writeProblem(w, p)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header         { return w.header }
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *statusOnly) WriteHeader(status int)      { w.status = status }

// secure sets what browsers are to refuse. Nothing is loaded from elsewhere, no page
// may be framed, and no script runs but those that are served here.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
}

// namesThisMachine says whether a Host header is one that no name server can give to
// another: a web page whose name is made to point here has its own.
func namesThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	return config.IsLoopback(host)
}

// watched notes the status, for the log.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
