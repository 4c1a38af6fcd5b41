package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// The lease is renewed while a handler works: one that takes many times as long
// as a lease holds is not run a second time by another node.
func TestAHandlerMayTakeLongerThanTheLease(t *testing.T) {
	inBubble(t, func(w *world) {
		reg := func() *registry.Registry {
			reg := registry.New()
			reg.Register("mail", registry.Func(func(ctx context.Context, _ registry.Job) error {
				select {
				case <-time.After(6 * w.lease):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}), registry.Options{Timeout: -1})
			reg.Register("marker", nop, registry.Options{})
			return reg
		}
		one, two := w.start(reg(), engine.Config{}), w.start(reg(), engine.Config{})
		w.schedule(client.Spec{ID: "long", Task: "mail"})
		var f engine.Firing
		select {
		case f = <-one.firings:
		case f = <-two.firings:
		}
		if f.Job.ID != "long" || f.Job.Attempt != 1 || f.Outcome != engine.Done || f.Took < 6*w.lease {
			w.Errorf("fired %+v", f)
		}
		one.stop()
		two.firedNothing(6 * w.lease)
	})
}
