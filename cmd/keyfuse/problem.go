package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// The exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitMissing  = 3
	exitConflict = 4
	exitRedis    = 5
)

// problem is an error with its exit code.
type problem struct {
	code int
	err  error
	next string // what to do, unless err says it
}

func (p *problem) Error() string {
	if p.next == "" {
		return p.err.Error()
	}
	return p.err.Error() + "; " + p.next
}

func (p *problem) Unwrap() error { return p.err }

func usagef(format string, args ...any) error {
	return &problem{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func failf(code int, format string, args ...any) error {
	return &problem{code: code, err: fmt.Errorf(format, args...)}
}

// errReported is the error of a command that has printed what is wrong already.
var errReported = errors.New("reported")

// complain prints an error: one line, or one for each thing that is wrong with
// a config file.
func (a *app) complain(p *problem) {
	if errors.Is(p.err, errReported) {
		return
	}
	if wrong, ok := errors.AsType[config.Errors](p.err); ok {
		for _, e := range wrong {
			a.complainf("%s", e.Error())
		}
		return
	}
	a.complainf("%s", p.Error())
}

func (a *app) complainf(format string, args ...any) {
	a.notef("keyfuse: "+format, args...)
}

// notef prints a line to stderr.
func (a *app) notef(format string, args ...any) {
	// If stderr is gone, there is nobody left to tell.
	_, _ = fmt.Fprintln(a.stderr, oneLine(fmt.Sprintf(format, args...)))
}

// explain finds the exit code and the next step for an error.
func explain(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	for _, known := range []struct {
		is   error
		code int
		next string
	}{
		{client.ErrNotFound, exitMissing, "keyfuse list shows what there is"},
		{client.ErrExists, exitConflict, "choose another --id, or add --if-exists replace or keep"},
		{client.ErrRunning, exitConflict, "what has started can't be changed any more: keyfuse show tells how it goes"},
		{client.ErrDead, exitConflict, ""},
		{client.ErrForeignKey, exitConflict, ""},
		{client.ErrNoThreshold, exitMissing, "keyfuse threshold list shows what there is"},
		{client.ErrPatterns, exitConflict, ""},
		{client.ErrEqualPattern, exitConflict, ""},
		{client.ErrNotCounter, exitConflict, ""},
		{client.ErrOverflow, exitConflict, ""},
		{client.ErrItems, exitConflict, ""},
		{client.ErrPending, exitConflict, ""},
		{client.ErrCounting, exitConflict, ""},
		{client.ErrInvalid, exitUsage, ""},
		{client.ErrBadCursor, exitUsage, "repeat the filters of the list that gave it, or leave --cursor out"},
		{wire.ErrBadTask, exitUsage, ""},
		{wire.ErrNewerFormat, exitFailed, ""},
		{context.Canceled, exitFailed, ""},
	} {
		if errors.Is(err, known.is) {
			return &problem{known.code, err, known.next}
		}
	}
	if r, ok := refusalOf(err); ok {
		return &problem{exitRedis, &refusedError{err}, r.next}
	}
	if isConnection(err) {
		return &problem{exitRedis, fmt.Errorf("can't reach Redis: %w", err), "start it, or name another with --redis-url or KEYFUSE_REDIS_URL"}
	}
	return &problem{code: exitFailed, err: err}
}

// isConnection says whether an error is of the way to Redis, not of its answer.
func isConnection(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	return isNet || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, redis.ErrPoolTimeout) || strings.Contains(err.Error(), "tls: ")
}

// refusal is an error that Redis answers, and what to do.
type refusal struct {
	mark  string // in Redis's text, lower case
	next  string
	final bool // waiting won't help: somebody must change something here
}

// refusedError is an answer of Redis without what only its authors understand:
// the place in a script.
type refusedError struct{ err error }

func (e *refusedError) Error() string {
	text, _, _ := strings.Cut(e.err.Error(), " script: ")
	return "Redis refuses: " + strings.TrimRight(text, ".")
}

func (e *refusedError) Unwrap() error { return e.err }

// aclRule is what a user needs to run everything of Keyfuse.
const aclRule = "ACL SETUSER <user> ~* &__keyevent@* &keyfuse:* +@read +@write +@scripting +@pubsub +@connection +info +time +config|get +config|set"

// The first that fits counts.
var refusals = []refusal{
	{"loading", "it is reading its data: try again when it is done", false},
	{"masterdown", "the replica lost its master: name the master in redis.url", false},
	{"readonly", "this is a replica: name the master in redis.url", false},
	{"read only", "this is a replica: name the master in redis.url", false},
	{"oom", "it is out of memory: raise maxmemory, or delete keys (keep maxmemory-policy noeviction)", false},
	{"misconf", "it can't save to disk and takes no writes: see its log and the space on its disk", false},
	{"noauth", "put the password into redis.url: redis://USER:PASSWORD@HOST:PORT", true},
	{"wrongpass", "correct the user name and password in redis.url", true},
	{"invalid password", "correct the password in redis.url", true},
	{"without any password configured", "take the password out of redis.url", true},
	{"noperm", "allow it: " + aclRule + "; keyfuse doctor says what exactly is missing", true},
	{"user executing the script can't", "allow it: " + aclRule + "; keyfuse doctor says what exactly is missing", true},
	{"max number of clients", "raise maxclients, or close connections", false},
	{"db index is out of range", "choose a lower database number in redis.url, or raise databases in redis.conf", true},
	{"unknown command", "Keyfuse needs Redis 7.0 or newer: keyfuse doctor says which this is", true},
	{"clusterdown", "Redis Cluster is not supported yet: name a standalone Redis in redis.url", false},
	{"moved ", "Redis Cluster is not supported yet: name a standalone Redis in redis.url", true},
	{"crossslot", "Redis Cluster is not supported yet: name a standalone Redis in redis.url", true},
	{"busy ", "somebody's script blocks it: SCRIPT KILL in redis-cli ends it", false},
}

// refusalOf looks whether an error is a known answer of Redis.
func refusalOf(err error) (refusal, bool) {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return refusal{}, false
	}
	text := strings.ToLower(answer.Error())
	for _, r := range refusals {
		if strings.Contains(text, r.mark) {
			return r, true
		}
	}
	return refusal{next: "keyfuse doctor looks for the reason"}, true
}
