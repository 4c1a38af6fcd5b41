package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// eachOnce waits until some jobs, id0 and so on, have fired once each.
func (n *node) eachOnce(id string, jobs int) {
	n.w.Helper()
	seen := make(map[string]bool)
	for len(seen) < jobs {
		f := n.fired()
		if !strings.HasPrefix(f.Job.ID, id) || seen[f.Job.ID] || f.Outcome != engine.Done || f.Late < 0 {
			n.w.Errorf("fired %+v", f)
		}
		seen[f.Job.ID] = true
	}
}

func (w *world) scheduleMany(id string, jobs int, in time.Duration) {
	w.Helper()
	for i := range jobs {
		w.schedule(client.Spec{ID: fmt.Sprint(id, i), Task: "mail", In: in})
	}
}

func TestJobsOutliveARedisThatIsKilled(t *testing.T) {
	t.Parallel()
	// everysec may hold back what it has acknowledged, and a kill then loses it.
	onRedisWith(t, []string{"--appendonly", "yes", "--appendfsync", "always"}, func(w *world) {
		log := &record{}
		lost, back := log.lineWith("for=heartbeat err="), log.lineWith(`works again" for=heartbeat`)
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger(), Lease: 2 * time.Second})
		w.scheduleMany("job", 50, 500*time.Millisecond)
		w.set("bare", "x", 500*time.Millisecond)
		w.set("class:bare", "mail", 0)
		w.server.Kill()
		await(w, lost, "the outage to be noticed")
		w.server.Restart()
		await(w, back, "the recovery to be noticed")
		seen := make(map[string]bool)
		for range 51 {
			f := n.fired()
			if seen[f.Job.ID] || f.Outcome != engine.Done {
				w.Errorf("fired %+v", f)
			}
			seen[f.Job.ID] = true
		}
		w.scheduleMany("late", 10, w.span)
		n.eachOnce("late", 10)
		text := log.String()
		for _, what := range []string{"heartbeat", "claiming", "listening"} {
			failures, recoveries := strings.Count(text, "for="+what+" err="), strings.Count(text, `works again" for=`+what)
			// An error says how: cut off, then refused, then loading.
			if failures > 4 || recoveries > 1 || failures > 0 && recoveries != 1 {
				w.Errorf("%s: %d failures, %d recoveries in the log", what, failures, recoveries)
			}
		}
		if w.Failed() {
			w.Log(text)
		}
	})
}

func TestAFrozenRedisDelaysJobsAndLosesNone(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		log := &record{}
		stuck := log.lineWith("for=heartbeat err=")
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger(), Lease: 2 * time.Second})
		w.scheduleMany("job", 50, 200*time.Millisecond)
		w.server.Pause()
		await(w, stuck, "the outage to be noticed")
		w.server.Resume()
		n.eachOnce("job", 50)
	})
}

func TestKilledConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm})
		for round := range 10 {
			id := fmt.Sprint("round", round, "/")
			w.scheduleMany(id, 10, 20*time.Millisecond)
			for _, kind := range []string{"normal", "pubsub"} {
				if err := w.rdb.ClientKillByFilter(w.Context(), "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
					w.Fatal(err)
				}
			}
			n.eachOnce(id, 10)
		}
	})
}

func TestFlushedScriptsGoUnnoticed(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		log := &record{}
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger(), Lease: calm})
		before := log.lines.Load()
		for i := range 20 {
			w.schedule(client.Spec{ID: fmt.Sprint(i), Task: "mail", In: 5 * time.Millisecond})
			if err := w.rdb.ScriptFlush(w.Context()).Err(); err != nil {
				w.Fatal(err)
			}
			if f := n.fired(); f.Outcome != engine.Done {
				w.Errorf("fired %+v", f)
			}
		}
		if lines := log.lines.Load() - before; lines != 0 {
			w.Errorf("%d lines in the log:\n%s", lines, log)
		}
	})
}

func TestARedisThatIsPausedForItsClientsDelaysJobs(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm})
		w.scheduleMany("job", 20, 50*time.Millisecond)
		if err := w.rdb.Do(w.Context(), "CLIENT", "PAUSE", 500, "ALL").Err(); err != nil {
			w.Fatal(err)
		}
		n.eachOnce("job", 20)
	})
}

func TestAFullRedisIsWorkedEmpty(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		fail := func(_ context.Context, job registry.Job) error {
			if job.ID == "fails" && job.Attempt == 1 {
				return registry.RetryAfter(10*time.Millisecond, context.DeadlineExceeded)
			}
			return nil
		}
		n := w.start(tasks(map[string]registry.Func{"mail": fail}), engine.Config{Lease: time.Second})
		w.scheduleMany("job", 20, 4*time.Second)
		w.schedule(client.Spec{ID: "fails", Task: "mail", In: 4 * time.Second})
		w.set("bare", "x", 4*time.Second)
		w.set("class:bare", "mail", 0)
		if err := w.rdb.ConfigSet(w.Context(), "maxmemory", "1").Err(); err != nil {
			w.Fatal(err)
		}
		_, err := w.jobs.Schedule(w.Context(), client.Spec{ID: "new", Task: "mail", In: time.Hour})
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			w.Errorf("scheduled in a full Redis: %v", err)
		}
		if keys := w.rdb.Exists(w.Context(), "new", "class:new").Val(); keys != 0 || w.rdb.ZScore(w.Context(), "keyfuse:due:mail", "new").Err() == nil {
			w.Error("the refused job left something")
		}
		// Long enough for the lease to end, if heartbeats were refused.
		outcomes := make(map[engine.Outcome]int)
		for range 23 {
			outcomes[n.fired().Outcome]++
		}
		if outcomes[engine.Done] != 22 || outcomes[engine.Retried] != 1 {
			w.Errorf("outcomes %v", outcomes)
		}
		n.stop()
		second := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		if err := w.rdb.ConfigSet(w.Context(), "maxmemory", "0").Err(); err != nil {
			w.Fatal(err)
		}
		w.scheduleMany("after", 5, w.span)
		second.eachOnce("after", 5)
	})
}

func TestARedisThatCannotSaveRefusesAndLosesNothing(t *testing.T) {
	t.Parallel()
	onRedisWith(t, []string{"--save", "3600 100000"}, func(w *world) {
		log := &record{}
		refused, back := log.lineWith("MISCONF"), log.lineWith("redis works again")
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger(), Lease: calm})
		w.scheduleMany("job", 20, w.span)
		dump := filepath.Join(w.server.Dir(), "dump.rdb")
		if err := os.Mkdir(dump, 0o700); err != nil { // no file can take its place
			w.Fatal(err)
		}
		if err := w.rdb.BgSave(w.Context()).Err(); err != nil {
			w.Fatal(err)
		}
		await(w, refused, "the first write to be refused")
		if _, err := w.jobs.Schedule(w.Context(), client.Spec{ID: "new", Task: "mail"}); err == nil || !strings.Contains(err.Error(), "MISCONF") {
			w.Errorf("scheduled: %v", err)
		}
		if err := os.Remove(dump); err != nil {
			w.Fatal(err)
		}
		if err := w.rdb.BgSave(w.Context()).Err(); err != nil {
			w.Fatal(err)
		}
		await(w, back, "the recovery")
		n.eachOnce("job", 20)
		n.firedNothing(w.span)
	})
}

func TestANodeWaitsForARedisThatLoads(t *testing.T) {
	t.Parallel()
	args := []string{"--key-load-delay", "300", "--loading-process-events-interval-bytes", "1024"}
	onRedisWith(t, args, func(w *world) {
		w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Second})
		const filler = 5000
		for i := range filler / 100 {
			values := make([]any, 0, 200)
			for k := range 100 {
				values = append(values, fmt.Sprint("filler", i, "/", k), strings.Repeat("x", 100))
			}
			if err := w.rdb.MSet(w.Context(), values...).Err(); err != nil {
				w.Fatal(err)
			}
		}
		if err := w.rdb.Save(w.Context()).Err(); err != nil {
			w.Fatal(err)
		}
		w.server.Kill()
		w.server.Launch()
		log := &record{}
		loading := log.lineWith("LOADING")
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger()})
		if f := n.fired(); f.Job.ID != "a" || f.Outcome != engine.Done {
			w.Errorf("fired %+v", f)
		}
		select {
		case <-loading:
		default:
			w.Errorf("the node never met a Redis that loads, so this test shows nothing:\n%s", log)
		}
	})
}

func TestNothingOfAnEngineIsLeftAfterRun(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("run", func(t *testing.T) {
		onRedis(t, func(w *world) {
			n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
			w.scheduleMany("job", 10, 10*time.Millisecond)
			n.eachOnce("job", 10)
			w.gap(n)
			n.stop()
			goleak.VerifyNone(t, before,
				// The server's and the client's, which end with the test.
				goleak.IgnoreAnyFunction("github.com/keyfuse-io/keyfuse/internal/redistest.(*Server).spawn.func1"),
				goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).queuedNewConn.func1"))
		})
	})
}
