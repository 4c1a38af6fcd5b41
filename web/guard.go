package web

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path"
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
	inner, headers := cross.Handler(mux), secure()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		maps.Copy(w.Header(), headers)
		seen := &watched{ResponseWriter: w, r: r}
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
			if s.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
				s.cfg.Log.Debug("http", "method", r.Method, "route", r.Pattern, "status", seen.status, "took", time.Since(begun).Round(time.Microsecond))
			}
		}()
		if !s.auth.isOn() && !namesThisMachine(r.Host) {
			writeProblem(seen, problem{
				Type: "host", Status: http.StatusForbidden, Title: "this is not the name of this machine",
				Detail: fmt.Sprintf("without a token only localhost and its addresses are answered to, not %q: set http.token", r.Host),
			})
			return
		}
		if !isClean(r.URL.EscapedPath()) {
			writeProblem(seen, unrouted(http.StatusNotFound, ""))
			return
		}
		inner.ServeHTTP(seen, r)
	})
}

// isClean says whether the mux takes a path as it is. It would send others to where they
// lead, with an id in them encoded twice: another job's.
func isClean(p string) bool { return p == path.Clean(p) || p == path.Clean(p)+"/" }

// secure is what browsers are to refuse. Nothing is loaded from elsewhere, no page may
// be framed, and no script runs but those that are served here.
func secure() http.Header {
	return http.Header{
		"Content-Security-Policy":      {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
		"X-Content-Type-Options":       {"nosniff"},
		"Referrer-Policy":              {"no-referrer"},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"X-Frame-Options":              {"DENY"},
		"Cache-Control":                {"no-store"},
	}
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

// watched notes the status, for the log, and answers with a problem where the mux,
// which knows no pattern for a request, would answer with plain text.
type watched struct {
	http.ResponseWriter
	r        *http.Request
	status   int
	answered bool // for the mux, whose own text is left out
}

func (w *watched) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	if w.r.Pattern == "" && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		w.answered = true
		writeProblem(w.ResponseWriter, unrouted(status, w.Header().Get("Allow")))
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func unrouted(status int, allowed string) problem {
	if status == http.StatusMethodNotAllowed {
		return problem{Type: "method", Status: status, Title: "not this method", Detail: "allowed here: " + allowed}
	}
	return problem{Type: "no-route", Status: status, Title: "there is nothing here", Detail: "the API is described at /v1/openapi.yaml"}
}

func (w *watched) Write(b []byte) (int, error) {
	if w.answered {
		return len(b), nil
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
