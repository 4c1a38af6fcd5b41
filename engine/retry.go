package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

// The wait between two tries of a call to Redis.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// final marks an error that trying again won't mend.
func final(err error) error { return finalError{err} }

// retry calls f until it succeeds, fails for good, or ctx ends.
func retry(ctx context.Context, f func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := f()
		if err == nil {
			return nil
		}
		if f, ok := errors.AsType[finalError](err); ok {
			return f.error
		}
		if !pause(ctx, wait/2+rand.N(wait)) {
			return context.Cause(ctx)
		}
	}
}

// pause waits, and says whether it did so to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff is how long a run waits after its attempt-th attempt failed:
// exponential, with the jitter spread evenly around it so that runs that failed
// together do not all come back together.
func backoff(r registry.Retries, attempt int) time.Duration {
	wait := r.Initial
	for range attempt - 1 {
		if wait >= r.MaxDelay/2 {
			wait = r.MaxDelay
			break
		}
		wait *= 2
	}
	wait = min(wait, r.MaxDelay)
	return time.Duration(float64(wait) * (1 + r.Jitter*(2*rand.Float64()-1)))
}

// troubles logs what goes wrong with Redis once and not again until it changes,
// and then that it is over: an outage must not flood the log, however many partitions
// it befalls.
type troubles struct {
	log *slog.Logger

	mu  sync.Mutex
	now map[string]map[int]string // what was tried → partition → the kind of error it met last
	// said is when a text was last said.
	said map[string]time.Time
}

// isNews says whether a text was not said for so long, and notes that it is now.
func (t *troubles) isNews(text string, within time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.said[text]; ok && time.Since(last) < within {
		return false
	}
	if t.said == nil {
		t.said = make(map[string]time.Time)
	}
	t.said[text] = time.Now()
	return true
}

func (t *troubles) note(what string, partition int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		if _, had := t.now[what][partition]; !had {
			return
		}
		if delete(t.now[what], partition); len(t.now[what]) == 0 {
			t.log.Info("redis works again", "for", what)
		}
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if t.now == nil {
		t.now = make(map[string]map[int]string)
	}
	if t.now[what] == nil {
		t.now[what] = make(map[int]string)
	}
	is, known := kindOf(err), false
	for _, kind := range t.now[what] {
		known = known || kind == is
	}
	if t.now[what][partition] = is; !known {
		t.log.Warn("redis fails; trying on", "for", what, "err", err)
	}
}

// kindOf is what an error says, without the ports of its connection: they
// differ from one try to the next.
func kindOf(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
