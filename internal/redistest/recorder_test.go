//go:build unix

package redistest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// recorder is a test that may fail or be skipped without harm.
type recorder struct {
	testing.TB
	verdict  string // what Fatalf, Errorf or Skipf said last
	skipped  bool
	failed   bool
	log      strings.Builder
	cleanups []func()
}

// record runs f, which starts a server, as a test of its own with its cleanups.
// If there is no redis-server, t is skipped or fails instead.
func record(t *testing.T, f func(testing.TB)) *recorder {
	t.Helper()
	findBinary(t, "redis-server")
	return recordAlways(t, f)
}

func recordAlways(t *testing.T, f func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	inGoroutine(func() { f(r) })
	for _, cleanup := range slices.Backward(r.cleanups) {
		inGoroutine(cleanup)
	}
	return r
}

// inGoroutine waits for f, which may end in runtime.Goexit.
func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool     { return r.failed }

func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.log, format+"\n", args...) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.verdict = fmt.Sprintf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = true
	r.verdict = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
