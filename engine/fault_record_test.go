package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// A record that somebody else has written over must not keep a node from
// claiming, nor hide the other runs.
func TestARecordThatCannotBeReadDiesAlone(t *testing.T) {
	for name, backend := range map[string]func(*testing.T, func(*world)){"bubble": inBubble, "redis": onRedis} {
		for _, garbage := range []string{"", "x", "1 2 3\nx", "1 1 timer index 0 99 99\n", "100000000000000 1 timer\nx"} {
			t.Run(name+" "+garbage, func(t *testing.T) {
				backend(t, func(w *world) {
					first := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, _ registry.Job) error {
						return registry.RetryAfter(w.span, errors.New("boom"))
					}}), engine.Config{})
					w.schedule(client.Spec{ID: "broken", Task: "mail"})
					run := first.fired().Job.RunID
					first.stop()
					w.rdb.HSet(w.Context(), "keyfuse:runs:mail", run, garbage)

					second := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
					if f := second.fired(); f.Job.RunID != run || f.Outcome != engine.Died {
						w.Errorf("fired %+v", f)
					}
					second.firedNothing(0)
					if page, err := w.jobs.List(w.Context(), client.Filter{State: client.Dead}, "", 10); err != nil || len(page.Jobs) != 1 || page.Jobs[0].LastError == "" {
						w.Errorf("listed %+v, %v", page, err)
					}
				})
			})
		}
	}
}
