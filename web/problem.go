package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/web/metrics"
)

// problem is a problem document (RFC 9457).
type problem struct {
	Type   string `json:"type"` // urn:keyfuse:problem: is put before it
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Line   int    `json:"line,omitempty"` // of a bulk, from 1

	retryAfter int // seconds; zero means not told
}

func (p problem) Error() string { return p.Title + ": " + p.Detail }

const problemSpace = "urn:keyfuse:problem:"

func writeProblem(w http.ResponseWriter, p problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	p.Type = problemSpace + p.Type
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who has gone needs no answer
}

// invalid is a problem with what was sent: 422, since its form is right.
func invalid(format string, args ...any) error {
	return problem{Type: "invalid", Status: http.StatusUnprocessableEntity, Title: "invalid", Detail: fmt.Errorf(format, args...).Error()}
}

// malformed is a problem with the form of what was sent.
func malformed(err error) error {
	return problem{Type: "malformed", Status: http.StatusBadRequest, Title: "malformed request", Detail: err.Error()}
}

// known are the errors that callers can do something about.
var known = []struct {
	is     error
	kind   string
	status int
	next   string
}{
	{client.ErrNotFound, "not-found", http.StatusNotFound, ""},
	{client.ErrNoThreshold, "no-threshold", http.StatusNotFound, ""},
	{client.ErrExists, "exists", http.StatusConflict, `choose another id, or set "if_exists" to replace or keep`},
	{client.ErrRunning, "running", http.StatusConflict, "what has started can't be changed any more"},
	{client.ErrDead, "dead", http.StatusConflict, "requeue or delete it at /v1/dead"},
	{client.ErrForeignKey, "foreign-key", http.StatusConflict, ""},
	{client.ErrCounting, "counting", http.StatusConflict, ""},
	{client.ErrPatterns, "patterns", http.StatusConflict, ""},
	{client.ErrEqualPattern, "equal-pattern", http.StatusConflict, ""},
	{client.ErrNotCounter, "not-a-counter", http.StatusConflict, ""},
	{client.ErrOverflow, "overflow", http.StatusConflict, ""},
	{client.ErrItems, "items", http.StatusConflict, ""},
	{client.ErrPending, "pending-job", http.StatusConflict, ""},
	{client.ErrInvalid, "invalid", http.StatusUnprocessableEntity, ""},
	{client.ErrBadCursor, "cursor", http.StatusBadRequest, "repeat the filters of the list that gave it, or leave it out"},
	{client.ErrUnconfirmed, "unconfirmed", http.StatusServiceUnavailable, `to ask again, send the same with its id and "if_exists": "keep"`},
	{client.ErrFormat, "format", http.StatusServiceUnavailable, ""},
	{client.ErrMoving, "moving", http.StatusServiceUnavailable, "try again"},
}

// problemOf says what went wrong.
func problemOf(err error) problem {
	if p, ok := errors.AsType[problem](err); ok {
		return p
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem{Type: "too-large", Status: http.StatusRequestEntityTooLarge, Title: "too large", Detail: fmt.Sprintf("more than %d bytes", large.Limit)}
	}
	for _, k := range known {
		if !errors.Is(err, k.is) {
			continue
		}
		p := problem{Type: k.kind, Status: k.status, Title: k.is.Error(), Detail: err.Error()}
		if k.next != "" {
			p.Detail += "; " + k.next
		}
		if k.status == http.StatusServiceUnavailable {
			p.retryAfter = 1
		}
		return p
	}
	return ourProblem(err)
}

// ourProblem is one of Redis, of the way to it, or of this program. What it says of
// addresses and users is for the log alone.
func ourProblem(err error) problem {
	p := problem{Type: "redis", Status: http.StatusServiceUnavailable, Title: "Redis does not answer", Detail: "the daemon's log says why; try again", retryAfter: 1}
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case answered:
		p.Title = "Redis refuses"
	case metrics.KindOf(err) == metrics.Other && !errors.Is(err, context.Canceled):
		return problem{Type: "internal", Status: http.StatusInternalServerError, Title: "this is a bug of Keyfuse", Detail: "the daemon's log says where"}
	}
	return p
}

// isOurs says that the request was not to blame.
func (p problem) isOurs() bool { return p.Type == "redis" || p.Type == "internal" }

// fail answers with what went wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // the caller has gone
	}
	p := problemOf(err)
	if p.isOurs() {
		s.cfg.Log.Warn("a request failed", "route", r.Pattern, "err", err)
	}
	writeProblem(w, p)
}
