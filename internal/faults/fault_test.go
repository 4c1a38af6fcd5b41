package faults

import (
	"testing"
	"time"
)

// TestFaults is the short form: each kind of fault once.
func TestFaults(t *testing.T) {
	t.Parallel()
	opts := readOptions(t, options{jobs: 8000, daemons: 3, lease: 3 * time.Second})
	s := startStandalone(t, opts.daemons, 0)
	opts.faults = opts.atLeast(len(opts.only(s.faults)))
	h := newHarness(t, opts, s)
	h.run()
	h.flush()
	h.report()
}
