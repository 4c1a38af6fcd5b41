package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/ways"
)

// The test binary is also the program that measurements and workers start again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "one" || os.Args[1] == "work") {
		main()
	}
	os.Exit(m.Run())
}

// output is what a command printed. Processes that it starts write to it too.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	when func(text string) // is called after each write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if o.when != nil {
		o.when(o.text.String())
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// bench runs the program and returns its exit code and what it printed.
func bench(ctx context.Context, stderr *output, args ...string) (code int, stdout string) {
	var out bytes.Buffer
	a := &app{ways: ways.All(), countings: ways.Countings(), stdout: &out, stderr: stderr}
	return a.run(ctx, args), out.String()
}

// The smoke form is the whole comparison of the ways on Redis, with small numbers.
func TestSmoke(t *testing.T) {
	needRedis(t)
	file := filepath.Join(t.TempDir(), "results.json")
	stderr := &output{}
	code, _ := bench(t.Context(), stderr, "run", "--size", "smoke", "--out", file)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	results, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	checkMissing(t, results)
	checkKeyfuse(t, results)

	code, stdout := bench(t.Context(), stderr, "run", "--size", "smoke", "--out", file, "--resume", "--plan")
	if done := strings.Count(stdout, "\n") == 1 || len(results.Missing) > 0; !done || code != 0 {
		t.Errorf("after all was measured there is a plan: %s", stdout)
	}
	dir := t.TempDir()
	if code, _ := bench(t.Context(), stderr, "report", "--results", file, "--dir", dir); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "comparison.md")); err != nil || !bytes.Contains(page, []byte("keyfuse")) {
		t.Errorf("the page does not name keyfuse: %v", err)
	}
}

// needRedis skips, or fails, as the tests of Keyfuse do.
func needRedis(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("KEYFUSE_REQUIRE_REDIS") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// checkMissing lets only that be missing which Go's module proxy does not serve.
func checkMissing(t *testing.T, results *result.Results) {
	t.Helper()
	for name, why := range results.Missing {
		if name != "bullmq" {
			t.Errorf("%s was left out: %s", name, why)
		}
	}
	for _, run := range results.Runs {
		if run.Failed != "" {
			t.Errorf("%s of %s: %s", run.Figure, run.Way, run.Failed)
		}
	}
}

// checkKeyfuse expects all figures of Keyfuse, and its promises kept.
func checkKeyfuse(t *testing.T, results *result.Results) {
	t.Helper()

	got := make(map[string]float64)
	for _, v := range results.Values {
		if v.Way == "keyfuse" && !v.Absent {
			got[v.Figure] = max(got[v.Figure], v.Value)
		}
	}
	want := map[string]float64{
		"early": 0, "unrun": 0, "twice": 0, "burst-early": 0, "burst-unrun": 0, "burst-twice": 0,
		"kill-twice": 0, "fired-wrong": 0,
	}
	for _, f := range result.Figures() {
		value, ok := got[f.Name]
		if f.Name == "kill-again" { // its lease outlasts this test
			continue
		}
		if !ok {
			t.Errorf("there is no %s of keyfuse", f.Name)
		}
		if most, ok := want[f.Name]; ok && value != most {
			t.Errorf("%s of keyfuse: %v, want %v", f.Name, value, most)
		}
	}
}

// What lives in one process is gone with it.
func TestKillOfALocalWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	stderr := &output{}
	code, _ := bench(t.Context(), stderr, "run", "--size", "smoke", "--out", file, "--figures", "kill", "--ways", "heap")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	results, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	checkStamps(t, results)
	i := slices.IndexFunc(results.Values, func(v result.Value) bool { return v.Figure == "kill-lost" })
	if i < 0 || results.Values[i].Value == 0 {
		t.Errorf("none was lost: %+v", results.Values)
	}
}

// checkStamps expects that it is known what of Keyfuse was measured, and when.
func checkStamps(t *testing.T, results *result.Results) {
	t.Helper()
	if results.Size != "smoke" || len(results.Runs) == 0 {
		t.Errorf("%d runs of the size %q", len(results.Runs), results.Size)
	}
	for _, run := range results.Runs {
		if _, err := time.Parse(time.RFC3339, run.At); err != nil || run.Commit != results.Versions["keyfuse"] {
			t.Errorf("a run at %q of %q: %v", run.At, run.Commit, err)
		}
	}
	for _, v := range results.Values {
		if v.Kind != "kill" {
			t.Errorf("%s is of the kind %q", v.Figure, v.Kind)
		}
	}
}

// An interrupted run ends what it started, keeps what it has, and can go on.
func TestInterrupt(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "results.json")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stderr := &output{when: func(text string) {
		if strings.Contains(text, "have run") { // the first of two levels
			interrupt()
		}
	}}
	args := []string{"run", "--size", "smoke", "--out", file, "--figures", "lateness", "--ways", "heap"}
	if code, _ := bench(ctx, stderr, args...); code != 1 || !strings.Contains(stderr.String(), "interrupted") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	results, err := load(file)
	if err != nil || len(results.Runs) != 0 {
		t.Errorf("%+v, %v: want no runs", results, err)
	}
	if code, _ := bench(t.Context(), &output{}, append(args, "--resume")...); code != 0 {
		t.Errorf("it does not go on: exit code %d", code)
	}
}

func TestLimitEndsAMeasurement(t *testing.T) {
	a := &app{ways: ways.All(), stderr: &output{}}
	_, err := a.child(t.Context(), task{Figure: "kill", Way: "heap", Size: "full"}, time.Second)
	if err == nil || !strings.HasPrefix(err.Error(), "stopped after 1s") {
		t.Errorf("%v: want that it was stopped after 1s", err)
	}
}

func TestWrongCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	noResults := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(noResults, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	smoke := filepath.Join(t.TempDir(), "smoke")
	if err := save(smoke, &result.Results{Size: "smoke", Runs: make([]result.Run, 1)}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--figures", "speed"}, `no figure "speed"`},
		{[]string{"run", "--rounds-of", "speed=2"}, `no figure "speed"`},
		{[]string{"run", "--figures", "burst", "--ways", "incr"}, "none of these ways"},
		{[]string{"run", "--ways", "cron"}, `no way that begins with "cron"`},
		{[]string{"run", "--size", "huge"}, `no size "huge"`},
		{[]string{"run", "--out", noResults}, "has no results"},
		{[]string{"run", "--out", smoke}, "name another file with --out"},
		{[]string{"report", "--results", file}, "bench run measures"},
		{[]string{"one", "{}"}, `no figure ""`},
		{[]string{"work", "{}"}, `no way ""`},
	} {
		stderr := &output{}
		args := test.args
		if args[0] == "run" && !slices.Contains(args, "--out") {
			args = append(args, "--out", file, "--plan")
		}
		code, stdout := bench(t.Context(), stderr, args...)
		if said := stdout + stderr.String(); code != 1 || !strings.Contains(strings.ReplaceAll(said, `\"`, `"`), test.want) {
			t.Errorf("%v: exit code %d, %s: want %q", test.args, code, said, test.want)
		}
	}
}
