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
	code  int
	err   error
	next  string // what to do, unless err says it
	final bool   // of exitRedis: waiting won't help, somebody must change something
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
		{client.ErrUnconfirmed, exitFailed, "to ask again, do the same once more (schedule: with the same id and --if-exists keep)"},
		{client.ErrInvalid, exitUsage, ""},
		{client.ErrBadCursor, exitUsage, "repeat the filters of the list that gave it, or leave --cursor out"},
		{wire.ErrBadTask, exitUsage, ""},
		{wire.ErrFormat, exitFailed, ""},
		{context.Canceled, exitFailed, ""},
	} {
		if errors.Is(err, known.is) {
			return &problem{code: known.code, err: err, next: known.next}
		}
	}
	if r, ok := refusalOf(err); ok {
		return &problem{exitRedis, &refusedError{err}, r.next, r.final}
	}
	if next, ok := tlsAdvice(err); ok {
		return unreachable(err, next, true)
	}
	if isConnection(err) {
		return unreachable(err, "start it, or name another with --redis-url or KEYFUSE_REDIS_URL", false)
	}
	return &problem{code: exitFailed, err: err}
}

func unreachable(err error, next string, final bool) *problem {
	return &problem{exitRedis, fmt.Errorf("can't reach Redis: %w", err), next, final}
}

// isConnection says whether an error is of the way to Redis, not of its answer.
func isConnection(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	return isNet || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, redis.ErrPoolTimeout) || strings.Contains(err.Error(), "tls: ")
}
