package registry

import (
	"errors"
	"fmt"
	"time"
)

// Verdict is what a handler's error asks for.
type Verdict int

// The verdicts.
const (
	VerdictDone    Verdict = iota // no error
	VerdictRetry                  // try again, after the task's own backoff
	VerdictAfter                  // try again, after a delay that the handler chose
	VerdictDead                   // no more attempts: to the dead letters
	VerdictDiscard                // drop it
)

type verdictError struct {
	err     error
	verdict Verdict
	delay   time.Duration
}

func (e *verdictError) Error() string { return e.err.Error() }
func (e *verdictError) Unwrap() error { return e.err }

// RetryAfter marks err so that the run is tried again after d instead of after
// the task's backoff. It is still an attempt that counts, and the last attempt
// is still the last. A d below zero is zero. A nil err stays an error.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = fmt.Errorf("retry after %s", d)
	}
	return &verdictError{err: err, verdict: VerdictAfter, delay: max(d, 0)}
}

// Dead marks err as final: the run goes to the dead letters, with its payload
// and this error, whatever attempts are left. Dead(nil) is nil.
func Dead(err error) error { return mark(err, VerdictDead) }

// Discard marks err as not worth keeping: the run is dropped, and only the log
// tells of it. Discard(nil) is nil.
func Discard(err error) error { return mark(err, VerdictDiscard) }

func mark(err error, v Verdict) error {
	if err == nil {
		return nil
	}
	return &verdictError{err: err, verdict: v}
}

// Judge reads what a handler's error asks for, and the delay of a RetryAfter.
// The outermost mark in the chain counts.
func Judge(err error) (Verdict, time.Duration) {
	if err == nil {
		return VerdictDone, 0
	}
	if marked, ok := errors.AsType[*verdictError](err); ok {
		return marked.verdict, marked.delay
	}
	return VerdictRetry, 0
}
