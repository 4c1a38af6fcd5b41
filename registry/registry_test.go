package registry_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

var nop = registry.Func(func(context.Context, registry.Job) error { return nil })

func TestRegisterPanicsOnMistakes(t *testing.T) {
	for what, c := range map[string]struct {
		name string
		h    registry.Handler
		opts registry.Options
		says string
	}{
		"no name":                  {"", nop, registry.Options{}, "has 0 bytes"},
		"a space":                  {"a b", nop, registry.Options{}, "may hold only"},
		"no handler":               {"a", nil, registry.Options{}, "nil handler"},
		"a nil function":           {"a", registry.Func(nil), registry.Options{}, "nil handler"},
		"negative concurrency":     {"a", nop, registry.Options{Concurrency: -1}, "concurrency"},
		"negative wait":            {"a", nop, registry.Options{Retries: registry.Retries{Initial: -1}}, "initial"},
		"negative longest wait":    {"a", nop, registry.Options{Retries: registry.Retries{MaxDelay: -1}}, "max delay"},
		"longest wait below first": {"a", nop, registry.Options{Retries: registry.Retries{Initial: 2, MaxDelay: 1}}, "max delay"},
		"jitter above one":         {"a", nop, registry.Options{Retries: registry.Retries{Jitter: 1.1}}, "jitter"},
		"jitter that is no number": {"a", nop, registry.Options{Retries: registry.Retries{Jitter: math.NaN()}}, "jitter"},
		"another delivery":         {"a", nop, registry.Options{Delivery: "perhaps"}, `"perhaps"`},
		"a name that is taken":     {"taken", nop, registry.Options{}, "twice"},
	} {
		r := registry.New()
		r.Register("taken", nop, registry.Options{})
		said := panics(func() { r.Register(c.name, c.h, c.opts) })
		if !strings.HasPrefix(said, "registry: ") || !strings.Contains(said, c.says) {
			t.Errorf("%s: panicked with %q, want something about %q", what, said, c.says)
		}
		if names := r.Names(); !slices.Equal(names, []string{"taken"}) {
			t.Errorf("%s: registered %q", what, names)
		}
	}
}

// panics is what f panics with, "" if it does not.
func panics(f func()) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

func TestZeroOptionsAreDefaultsAndNegativeOnesNone(t *testing.T) {
	for what, c := range map[string]struct{ give, want registry.Options }{
		"zero": {registry.Options{}, registry.Options{
			Timeout: 30 * time.Second, Delivery: registry.AtLeastOnce,
			Retries: registry.Retries{Max: 10, Initial: time.Second, MaxDelay: time.Hour, Jitter: 0.2},
		}},
		"negative": {registry.Options{Timeout: -1, Retries: registry.Retries{Max: -1, Jitter: -1}}, registry.Options{
			Delivery: registry.AtLeastOnce, Retries: registry.Retries{Initial: time.Second, MaxDelay: time.Hour},
		}},
		"a first wait above the default longest one": {registry.Options{Retries: registry.Retries{Initial: 2 * time.Hour}}, registry.Options{
			Timeout: 30 * time.Second, Delivery: registry.AtLeastOnce,
			Retries: registry.Retries{Max: 10, Initial: 2 * time.Hour, MaxDelay: 2 * time.Hour, Jitter: 0.2},
		}},
		"all given": {registry.Options{
			Timeout: 1, Concurrency: 2, Delivery: registry.AtMostOnce, Retries: registry.Retries{Max: 3, Initial: 4, MaxDelay: 5, Jitter: 1},
		}, registry.Options{
			Timeout: 1, Concurrency: 2, Delivery: registry.AtMostOnce, Retries: registry.Retries{Max: 3, Initial: 4, MaxDelay: 5, Jitter: 1},
		}},
	} {
		r := registry.New()
		r.Register("a", nop, c.give)
		if task, _ := r.Lookup("a"); task.Options != c.want {
			t.Errorf("%s: got %+v, want %+v", what, task.Options, c.want)
		}
	}
}

func TestLookupFindsWhatIsRegistered(t *testing.T) {
	var r registry.Registry // the zero value is ready
	if _, ok := r.Lookup("a"); ok || len(r.Names()) != 0 {
		t.Error("an empty registry has tasks")
	}
	var called registry.Job
	r.Register("b", registry.Func(func(_ context.Context, job registry.Job) error {
		called = job
		return nil
	}), registry.Options{})
	r.Register("a", nop, registry.Options{})
	if names := r.Names(); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("names %q", names)
	}
	task, ok := r.Lookup("b")
	if !ok || task.Name != "b" {
		t.Fatalf("found %+v, %t", task, ok)
	}
	if err := task.Handler.Handle(t.Context(), registry.Job{ID: "x"}); err != nil || called.ID != "x" {
		t.Errorf("called with %+v, %v", called, err)
	}
}

func TestRegistryIsSafeForManyGoroutines(t *testing.T) {
	r := registry.New()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { r.Register(fmt.Sprint("task-", i), nop, registry.Options{}) })
		all.Go(func() { r.Lookup("task-1") })
		all.Go(func() { r.Names() })
	}
	all.Wait()
	if n := len(r.Names()); n != 20 {
		t.Errorf("%d tasks, want 20", n)
	}
}

func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"", "a", "cancel-order", "com.acme.Job", "a/b:c_d", "-a", ".a", "a b", "é", "a\x00", "0", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := registry.CheckName(name)
		if (err == nil) != isName(name) {
			t.Fatalf("%q: %v", name, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
		said := panics(func() { registry.New().Register(name, nop, registry.Options{}) })
		if (said != "") != (err != nil) {
			t.Fatalf("%q: CheckName says %v, Register %q", name, err, said)
		}
	})
}

// isName says it another way: [A-Za-z0-9][A-Za-z0-9._:/-]{0,127}.
func isName(name string) bool {
	const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= registry.MaxName && strings.IndexByte(first, name[0]) >= 0 &&
		strings.Trim(name, first+"._:/-") == "" && strings.IndexFunc(name, func(r rune) bool { return !strings.ContainsRune(first+"._:/-", r) }) < 0
}
