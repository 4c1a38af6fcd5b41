package measure

import (
	"context"
	"errors"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// idle measures what a worker costs that waits for one job far away: first its commands,
// then its CPU, since counting the commands costs some.
func idle(ctx context.Context, l *Lab) error {
	return l.in(ctx, 0, true, func(w *world) error {
		if err := w.inst.Single(ctx, w.far(1), 1); err != nil {
			return err
		}
		// What starting costs is over by then.
		if err := sleep(ctx, time.Now().Add(l.Sizes.Idle/5)); err != nil {
			return err
		}
		if !w.Way.Local() {
			if err := w.idleCommands(ctx); err != nil {
				return err
			}
		}
		return w.idleCPU(ctx)
	})
}

func (w *world) idleCommands(ctx context.Context) error {
	began := time.Now()
	counted, err := w.stores.count(ctx)
	if errors.Is(err, servers.ErrUnknown) {
		w.absent("idle-commands", 0, servers.ErrUnknown.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if err := sleep(ctx, began.Add(w.Sizes.Counting)); err != nil {
		return err
	}
	n, err := counted()
	if err == nil {
		w.tell("idle-commands", 0, n/time.Since(began).Seconds())
	}
	return err
}

func (w *world) idleCPU(ctx context.Context) error {
	before, err := w.usage()
	if err != nil {
		return err
	}
	if err := sleep(ctx, before.at.Add(w.Sizes.Idle)); err != nil {
		return err
	}
	after, err := w.usage()
	if err != nil {
		return err
	}
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / after.at.Sub(before.at).Seconds() }
	w.tell("idle-cpu-worker", 0, percent(after.worker-before.worker))
	if !w.Way.Local() {
		w.tell("idle-cpu-store", 0, percent(after.store-before.store))
	}
	return nil
}

// usage is what a worker and its stores have used until a time.
type usage struct {
	at            time.Time
	worker, store time.Duration
}

func (w *world) usage() (u usage, err error) {
	u.at, u.store = time.Now(), w.stores.cpu()
	u.worker, err = servers.CPUOf(w.worker.pid)
	return u, err
}
