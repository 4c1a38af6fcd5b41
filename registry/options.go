package registry

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Delivery is a task's choice of what to risk when a node dies with a run in
// its hands.
type Delivery string

// The choices.
const (
	// AtLeastOnce runs the job again: it may run twice.
	AtLeastOnce Delivery = "at-least-once"
	// AtMostOnce never starts a job's handler a second time by itself: not
	// after an error, nor after a crash. Such a run goes to the dead letters,
	// where a person can requeue it.
	AtMostOnce Delivery = "at-most-once"
)

// Options are a task's limits. The zero value is right for most tasks.
type Options struct {
	// Timeout ends a run's context. Zero means 30 s; negative means none.
	Timeout time.Duration
	// Retries says how often and how fast failed runs are tried again.
	Retries Retries
	// Concurrency bounds how many of the task's runs one node has at a time.
	// Zero means no bound but the node's own.
	Concurrency int
	// Delivery is empty for AtLeastOnce.
	Delivery Delivery
}

// Retries is exponential backoff with jitter: before retry n a run waits
// Initial × 2^(n-1), at most MaxDelay, give or take the share Jitter.
type Retries struct {
	// Max is how many times a failed run is tried again, after its first
	// attempt. Zero means 10; negative means never.
	Max int
	// Initial is the wait before the first retry. Zero means 1 s.
	Initial time.Duration
	// MaxDelay bounds the wait. Zero means 1 h.
	MaxDelay time.Duration
	// Jitter is from 0 to 1. Zero means 0.2; negative means none.
	Jitter float64
}

// The defaults, for whatever documents or prints them.
const (
	DefaultTimeout      = 30 * time.Second
	DefaultRetries      = 10
	DefaultRetryInitial = time.Second
	DefaultRetryMax     = time.Hour
	DefaultJitter       = 0.2
)

// complete fills in defaults; in what it returns, zero and negative mean what
// they say: no retries, no jitter, no timeout.
func (o Options) complete() (Options, error) {
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.Retries.Max = orDefault(o.Retries.Max, DefaultRetries)
	o.Retries.Jitter = orDefault(o.Retries.Jitter, DefaultJitter)
	if o.Retries.Initial == 0 {
		o.Retries.Initial = DefaultRetryInitial
	}
	if o.Retries.MaxDelay == 0 {
		o.Retries.MaxDelay = max(DefaultRetryMax, o.Retries.Initial)
	}
	if o.Delivery == "" {
		o.Delivery = AtLeastOnce
	}
	switch {
	case o.Concurrency < 0:
		return o, fmt.Errorf("concurrency is %d: it must not be negative", o.Concurrency)
	case o.Retries.Initial < 0 || o.Retries.MaxDelay < o.Retries.Initial:
		return o, fmt.Errorf("retries wait from %s to %s: want 0 < initial <= max delay", o.Retries.Initial, o.Retries.MaxDelay)
	case o.Retries.Jitter > 1 || math.IsNaN(o.Retries.Jitter):
		return o, errors.New("retry jitter is a share from 0 to 1")
	case o.Delivery != AtLeastOnce && o.Delivery != AtMostOnce:
		return o, fmt.Errorf("delivery %q: want %s or %s", o.Delivery, AtLeastOnce, AtMostOnce)
	}
	return o, nil
}

// orDefault reads a setting where zero means default and negative means none.
func orDefault[T int | float64 | time.Duration](v, def T) T {
	switch {
	case v == 0:
		return def
	case v < 0:
		return 0
	}
	return v
}
