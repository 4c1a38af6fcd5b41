package measure

import (
	"context"
	"errors"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// idle measures what a worker costs that waits for one job far away.
func idle(ctx context.Context, l *Lab) error {
	return l.in(ctx, 0, true, func(w *world) error {
		if err := w.inst.Single(ctx, w.far(1), 1); err != nil {
			return err
		}
		// What starting costs is over by then.
		if err := sleep(ctx, time.Now().Add(l.Sizes.Idle/5)); err != nil {
			return err
		}
		before, err := w.usage(ctx)
		if err != nil {
			return err
		}
		if err := sleep(ctx, time.Now().Add(l.Sizes.Idle)); err != nil {
			return err
		}
		after, err := w.usage(ctx)
		if err != nil {
			return err
		}
		w.tellIdle(before, after)
		return nil
	})
}

// usage is what a worker and its stores have used until a time.
type usage struct {
	at            time.Time
	worker, store time.Duration
	commands      float64 // -1 if the stores can't tell
}

func (w *world) usage(ctx context.Context) (u usage, err error) {
	u.at, u.store = time.Now(), w.stores.cpu()
	if u.worker, err = cpuOf(w.worker.pid); err != nil {
		return u, err
	}
	u.commands, err = w.stores.commands(ctx)
	if errors.Is(err, servers.ErrUnknown) {
		u.commands, err = -1, nil
	}
	return u, err
}

func (w *world) tellIdle(before, after usage) {
	seconds := after.at.Sub(before.at).Seconds()
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / seconds }
	w.tell("idle-cpu-worker", 0, percent(after.worker-before.worker))
	if w.Way.Local() {
		return
	}
	w.tell("idle-cpu-store", 0, percent(after.store-before.store))
	if before.commands < 0 {
		w.absent("idle-commands", 0, servers.ErrUnknown.Error())
		return
	}
	w.tell("idle-commands", 0, (after.commands-before.commands)/seconds)
}
