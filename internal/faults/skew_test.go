package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFaultSkew has daemons whose clocks are five minutes wrong. No process's own
// clock can be set, but Redis's can: by a library that is loaded before libc. To
// Keyfuse it is the same which of the two is wrong. Each daemon compares its clock
// with Redis's alone.
func TestFaultSkew(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": 5 * time.Minute, "ahead": -5 * time.Minute} {
		t.Run("daemons "+name, func(t *testing.T) {
			preloadSkew(t, skew)
			opts := readOptions(t, options{jobs: 500, daemons: 2, faults: 3, lease: 3 * time.Second})
			opts.kinds = []string{"daemon killed", "redis killed", "subscriptions cut"}
			s := startStandalone(t, opts.daemons, skew)
			h := newHarness(t, opts, s)
			if off := time.Until(s.admin.Time(t.Context()).Val()) - skew; off.Abs() > time.Minute {
				t.Fatalf("Redis's clock is %s away from where it should be: redis-server was linked so that nothing can be preloaded", off)
			}
			h.run()
			h.report()
		})
	}
}

const preload = "LD_PRELOAD"

// isPreload finds what a skewed clock puts into the environment of redis-server.
func isPreload(variable string) bool { return strings.HasPrefix(variable, preload+"=") }

// preloadSkew lets servers that are started from now on have a wrong clock.
func preloadSkew(t *testing.T, skew time.Duration) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if runtime.GOOS != "linux" || err != nil {
		if os.Getenv("KEYFUSE_REQUIRE_REDIS") == "1" && runtime.GOOS == "linux" {
			t.Fatal("a C compiler is missing: apt-get install gcc libc6-dev")
		}
		t.Skip("a clock is skewed on Linux only, and with a C compiler")
	}
	library := filepath.Join(t.TempDir(), "skew.so")
	if out, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-o", library, "testdata/skew.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv(preload, library)
	t.Setenv("KEYFUSE_FAULT_SKEW_MS", strconv.FormatInt(skew.Milliseconds(), 10))
}
