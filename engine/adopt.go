package engine

import (
	"context"
	"slices"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// adoptLoop indexes the bare jobs among the ids whose fuses were heard to
// expire. Most ids are of no concern: claimed already, or no jobs at all.
func (e *Engine) adoptLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.inbox.filled:
		}
		ids, lost := e.inbox.takeAll()
		if lost {
			e.log.Warn("events come faster than they can be looked up; a sweep finds the rest")
			e.swept.ask(e.redisNow())
		}
		for chunk := range slices.Chunk(ids, adoptWindow) {
			err := retry(ctx, func() error {
				adopted, err := e.adopt(ctx, wire.ByEvent, chunk)
				e.troubles.note("adopting", err)
				e.tellRefused(adopted)
				return err
			})
			if err != nil {
				return // the sweep at the next start finds the rest
			}
		}
	}
}

func (e *Engine) adopt(ctx context.Context, by wire.Finder, ids []string) (wire.Adopted, error) {
	adopted, err := e.store.Adopt(ctx, by, orphanGrace, e.cfg.MaxPayload, ids)
	if err == nil && adopted.Indexed+adopted.Known > 0 {
		e.look.give()
	}
	return adopted, err
}

// tellRefused says that there are class keys which make no job, in one line
// however many.
func (e *Engine) tellRefused(found wire.Adopted) {
	if found.Refused > 0 {
		e.log.Warn("class keys that make no job are left alone; keyfuse doctor lists them",
			"count", found.Refused, "example", found.Example, "why", found.Why)
	}
}
