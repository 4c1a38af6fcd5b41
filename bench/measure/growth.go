package measure

import "context"

// growth measures how scheduling, memory, lateness and a burst change as more and more
// jobs are pending.
func growth(ctx context.Context, l *Lab) error {
	s := l.Sizes
	return l.in(ctx, len(s.Growing)*(s.Spread+burstSlots(s.Burst)), true, func(w *world) error {
		for _, pending := range s.Growing {
			if err := w.grow(ctx, pending); err != nil {
				return err
			}
			if note := w.beside(pending); note != "" {
				l.absent("growth-rate", pending, note)
				return nil
			}
			if err := w.grown(ctx, pending); err != nil {
				return err
			}
		}
		return nil
	})
}

// grow schedules jobs until so many are pending.
func (w *world) grow(ctx context.Context, pending int) error {
	had := w.pending
	before, err := w.stores.memory(ctx)
	if err != nil {
		return err
	}
	p, err := w.fill(ctx, pending, w.Sizes.Loading)
	if err != nil || p.done == 0 {
		return err
	}
	w.tell("growth-schedule", pending, p.rate(), short("scheduling", p, pending-had))
	return w.perJob(ctx, "growth-memory", pending, before, p.done)
}

// grown measures beside so many.
func (w *world) grown(ctx context.Context, pending int) error {
	t, note, err := w.stream(ctx)
	if err != nil {
		return err
	}
	w.tell("growth-late-p50", pending, t.percentile(0.5), note, t.beyond(0.5))
	w.tell("growth-late-p99", pending, t.percentile(0.99), note, t.beyond(0.99))
	b, err := w.burst(ctx, w.Sizes.Burst)
	if err != nil {
		return err
	}
	w.tellRate("growth-rate", pending, b)
	w.tell("growth-early", pending, float64(t.early+b.early), t.strays(), b.strays())
	w.tell("growth-unrun", pending, float64(t.unrun+b.unrun))
	return nil
}
