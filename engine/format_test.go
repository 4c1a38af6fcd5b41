package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// formatChanges: what runs is settled, nothing more is claimed, and Run says why.
func formatChanges(w *world) {
	started, release := make(chan registry.Job, 1), make(chan struct{})
	reg := tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		started <- job
		<-release
		return nil
	}})
	settled := make(chan engine.Firing, 1)
	e, err := engine.New(w.open(), reg, engine.Config{
		Lease: w.lease, Logger: slog.New(slog.DiscardHandler),
		Observer: engine.Observer{Settled: func(f engine.Firing) { settled <- f }},
	})
	if err != nil {
		w.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(w.Context()) }()
	w.schedule(client.Spec{ID: "a", Task: "mail"})
	await(w, started, "the run")
	w.set("keyfuse:format", "3", 0)
	close(release)
	if f := await(w, settled, "the outcome"); f.Outcome != engine.Done {
		w.Errorf("the run that was under way: %+v", f)
	}
	if err := await(w, ended, "the end"); !errors.Is(err, client.ErrFormat) {
		w.Errorf("Run: %v", err)
	}
	if got := w.rdb.Get(w.Context(), "keyfuse:format").Val(); got != "3" {
		w.Errorf("the format is %q", got)
	}
}

func TestReleasesOfOneFormatWorkTogether(t *testing.T) {
	inBubble(t, func(w *world) {
		older := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Version: "1.0.0", Concurrency: 1})
		newer := w.start(tasks(map[string]registry.Func{"mail": nop, "fax": nop}), engine.Config{Version: "1.1.0"})
		stats, err := w.jobs.Stats(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		versions := make(map[string]int)
		for _, n := range stats.Nodes {
			versions[n.Version] = len(n.Tasks)
		}
		if len(versions) != 2 || versions["1.0.0"] != 2 || versions["1.1.0"] != 3 { // with the marker
			w.Errorf("nodes by version, with their tasks: %v", versions)
		}
		newer.stop()
		w.schedule(client.Spec{ID: "a", Task: "mail"})
		older.fired()
	})
}
