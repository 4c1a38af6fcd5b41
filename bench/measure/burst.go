package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func smallBurst(ctx context.Context, l *Lab) error { return burst(ctx, l, l.Sizes.Burst) }

func bigBurst(ctx context.Context, l *Lab) error { return burst(ctx, l, l.Sizes.BigBurst) }

// burst measures what becomes of jobs that are due at one moment.
func burst(ctx context.Context, l *Lab, n int) error {
	return l.in(ctx, n, true, func(w *world) error {
		b, err := w.burst(ctx, n)
		if err != nil {
			return err
		}
		w.tellRate("burst-rate", n, b)
		l.tell("burst-late-p50", n, b.percentile(0.5), b.note, b.beyond(0.5))
		l.tell("burst-late-p99", n, b.percentile(0.99), b.note, b.beyond(0.99))
		l.tell("burst-early", n, float64(b.early), b.note)
		l.tell("burst-unrun", n, float64(b.unrun), b.note)
		l.tell("burst-twice", n, float64(b.twice), b.note)
		l.tell("burst-cpu-worker", n, micros(b.worker)/float64(max(1, b.ended)), b.note, b.unseen)
		if !w.Way.Local() {
			l.tell("burst-cpu-store", n, micros(b.store)/float64(max(1, b.ended)), b.note, b.unseen)
		}
		if b.block != nil {
			l.tell("burst-latency", n, millis(b.block.longest), b.note, b.unseen)
			l.tell("burst-ping", n, millis(b.block.ping), b.note, b.unseen)
			l.tell("burst-block", n, millis(max(b.block.longest, b.block.ping)), b.note, b.unseen)
		}
		return nil
	})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// burstTally is what became of a burst.
type burstTally struct {
	tally
	due           time.Time // or when the last was scheduled, if that was later
	worker, store time.Duration
	block         *block // nil but for Redis
	note          string
	unseen        string // what was not watched of the CPU and the blocks
}

// tellRate tells the runs a second, until the last run that there was.
func (w *world) tellRate(figure string, size int, b burstTally) {
	took := b.last.Sub(b.due).Seconds()
	if took <= 0 {
		w.absent(figure, size, joined([]string{b.note, "none has run since"}))
		return
	}
	w.tell(figure, size, float64(b.ended)/took, b.note, b.stopped())
}

// stopped notes that it is the rate of some only.
func (b burstTally) stopped() string {
	if b.unrun == 0 {
		return ""
	}
	return fmt.Sprintf("of the %s jobs that had run when waiting ended, %.0f s after they were due; %s had not",
		thousands(b.ended), b.waited.Sub(b.due).Seconds(), thousands(b.unrun))
}

// burst runs so many jobs that are due at one moment: fewer if scheduling them takes
// too long.
func (w *world) burst(ctx context.Context, n int) (b burstTally, err error) {
	ahead, err := w.probe(ctx, n)
	if err != nil {
		return b, err
	}
	if most := w.Sizes.Ahead; ahead > most {
		fewer := max(1, int(float64(n)*most.Seconds()/ahead.Seconds()))
		b.note = fmt.Sprintf("%s jobs only: scheduling all would take %.0f s", thousands(fewer), ahead.Seconds())
		n, ahead = fewer, most
	}
	due := up(time.Now().Add(2*time.Second+ahead), w.Way.Grain)
	jobs := []way.Jobs{{From: w.number(n), Count: n, First: due}}
	tardy, err := w.put(ctx, jobs)
	if err != nil {
		return b, err
	}
	b.note = joined([]string{b.note, tardy})
	fmt.Fprintf(w.Log, "%s: %s jobs, due in %.1f s\n", w.Way.Name, thousands(n), time.Until(due).Seconds())
	b.due = due
	if now := time.Now(); now.After(due) {
		b.due = now
	}
	err = w.watchBurst(ctx, jobs, &b)
	return b, err
}

// eve is when the watch begins, before the jobs are due.
const eve = 300 * time.Millisecond

// watchBurst measures the burst from shortly before the jobs are due.
func (w *world) watchBurst(ctx context.Context, jobs []way.Jobs, b *burstTally) error {
	if err := sleep(ctx, b.due.Add(-eve)); err != nil {
		return err
	}
	blocked, err := w.stores.watchBlock(ctx)
	if err != nil {
		return err
	}
	worker, err := cpuOf(w.worker.pid)
	if err != nil {
		return err
	}
	store := w.stores.cpu()
	if late := time.Since(b.due); late > 0 {
		b.unseen = fmt.Sprintf("of all but the first %.2f s", late.Seconds())
	}
	if b.tally, err = w.drain(ctx, jobs, b.due, w.Sizes.Draining); err != nil {
		return err
	}
	b.store = w.stores.cpu() - store
	if b.worker, err = cpuOf(w.worker.pid); err != nil {
		return err
	}
	b.worker -= worker
	b.block, err = blocked()
	return err
}
