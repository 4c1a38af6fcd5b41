package faults

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// options say how large a run is.
type options struct {
	seed    uint64
	jobs    int
	faults  int
	daemons int
	lease   time.Duration
	kinds   []string // empty for all
	dir     string
}

// readOptions fills in from the environment.
func readOptions(t testing.TB, o options) options {
	t.Helper()
	o.seed = uint64(number(t, "KEYFUSE_FAULT_SEED", rand.IntN(1_000_000_000)))
	o.jobs = number(t, "KEYFUSE_FAULT_JOBS", o.jobs)
	o.faults = number(t, "KEYFUSE_FAULT_FAULTS", o.faults)
	o.daemons = number(t, "KEYFUSE_FAULT_DAEMONS", o.daemons)
	if text := os.Getenv("KEYFUSE_FAULT_LEASE"); text != "" {
		var err error
		if o.lease, err = time.ParseDuration(text); err != nil {
			t.Fatalf("KEYFUSE_FAULT_LEASE: %v", err)
		}
	}
	o.dir = os.Getenv("KEYFUSE_FAULT_DIR")
	if kinds := os.Getenv("KEYFUSE_FAULT_KINDS"); kinds != "" {
		o.kinds = strings.Split(kinds, ",")
	}
	return o
}

func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number from 1", name, text)
	}
	return n
}

// atLeast is how many faults there are: each kind once, unless it was said.
func (o options) atLeast(kinds int) int { return cmp.Or(o.faults, kinds) }

// only are the faults of the kinds that were asked for.
func (o options) only(all []fault) []fault {
	if len(o.kinds) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !slices.Contains(o.kinds, f.name) })
}
