package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

func smallBurst(ctx context.Context, l *Lab) error { return burst(ctx, l, l.Sizes.Burst) }

func bigBurst(ctx context.Context, l *Lab) error { return burst(ctx, l, l.Sizes.BigBurst) }

// burst measures what becomes of jobs that are due at one moment.
func burst(ctx context.Context, l *Lab, n int) error {
	return l.in(ctx, burstSlots(n), true, func(w *world) error {
		b, err := w.burst(ctx, n)
		if err != nil {
			return err
		}
		w.tellRate("burst-rate", n, b)
		l.tellUnless(b.tooLate(), "burst-late-p50", n, b.percentile(0.5), b.note, b.beyond(0.5))
		l.tellUnless(b.tooLate(), "burst-late-p99", n, b.percentile(0.99), b.note, b.beyond(0.99))
		l.tell("burst-early", n, float64(b.early), b.note)
		l.tell("burst-unrun", n, float64(b.unrun), b.note)
		l.tell("burst-twice", n, float64(b.twice), b.note)
		w.tellUsage(n, b)
		return nil
	})
}

// tellUsage tells what the burst took of the CPU and of Redis.
func (w *world) tellUsage(n int, b burstTally) {
	runs := float64(max(1, b.ended))
	w.tellUnless(b.noRuns(), "burst-cpu-worker", n, micros(b.worker)/runs, b.note)
	if !w.Way.Local() {
		w.tellUnless(b.noRuns(), "burst-cpu-store", n, micros(b.store)/runs, b.note)
	}
	if w.stores.redis() != nil {
		w.tellUnless(b.noRuns(), "burst-latency", n, millis(b.block.longest), b.note)
		w.tellUnless(b.noPings(), "burst-ping", n, millis(b.block.ping), b.note)
		w.tellUnless(b.noRuns(), "burst-block", n, millis(max(b.block.longest, b.block.ping)), b.note)
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// burstTally is what became of a burst.
type burstTally struct {
	tally
	due           time.Time
	tardy         time.Duration // how long scheduling went on after that: if it did, nothing that follows is known
	worker, store time.Duration
	block         block // zero but for Redis
	note          string
}

// tooLate says why there are no times: some of the jobs ran before all were there.
func (b burstTally) tooLate() string {
	if b.tardy <= 0 {
		return ""
	}
	return fmt.Sprintf("scheduling them ended %.1f s after they were due, so that some ran before", b.tardy.Seconds())
}

// noRuns says why there are no figures of the time until the last run.
func (b burstTally) noRuns() string {
	if why := b.tooLate(); why != "" || b.last.After(b.due) {
		return why
	}
	return joined([]string{b.note, "none has run since they were due"})
}

func (b burstTally) noPings() string {
	if why := b.noRuns(); why != "" || b.block.pings > 0 {
		return why
	}
	return "it was over before a PING was due"
}

// tellRate tells the runs a second, until the last run that there was.
func (w *world) tellRate(figure string, size int, b burstTally) {
	rate := float64(b.ended) / max(time.Nanosecond, b.last.Sub(b.due)).Seconds()
	w.tellUnless(b.noRuns(), figure, size, rate, b.note, b.stopped())
}

// stopped notes that it is the rate of some only.
func (b burstTally) stopped() string {
	if b.unrun == 0 {
		return ""
	}
	return fmt.Sprintf("of the %s jobs that had run when waiting ended, %.0f s after they were due; %s had not",
		thousands(b.ended), b.waited.Sub(b.due).Seconds(), thousands(b.unrun))
}

// burstSlots are the slots that a burst takes in a record at most: it may be made twice.
func burstSlots(n int) int { return 2*n + 2*probed(n) }

// burst runs so many jobs that are due at one moment: fewer if scheduling them takes
// too long. What was scheduled too late is done again with twice the time for it.
func (w *world) burst(ctx context.Context, n int) (b burstTally, err error) {
	ahead, err := w.probe(ctx, n)
	if err != nil {
		return b, err
	}
	fewer := ""
	if most := w.Sizes.Ahead; ahead > most {
		n, ahead = max(1, int(float64(n)*most.Seconds()/ahead.Seconds())), most
		fewer = fmt.Sprintf("%s jobs only: scheduling all would take too long", thousands(n))
	}
	lead := 2*time.Second + ahead
	b, err = w.burstAfter(ctx, n, lead)
	if err == nil && b.tardy > 0 && b.unrun == 0 {
		w.astray -= b.astray // the second tells of those too
		b, err = w.burstAfter(ctx, n, 2*lead)
	}
	b.note = joined([]string{fewer, b.strays()})
	return b, err
}

// burstAfter runs jobs that are due when so much time has passed. If scheduling them
// takes longer, it only waits until they have run.
func (w *world) burstAfter(ctx context.Context, n int, lead time.Duration) (b burstTally, err error) {
	b.due = up(time.Now().Add(lead), w.Way.Grain)
	jobs := []way.Jobs{{From: w.number(n), Count: n, First: b.due}}
	if b.tardy, err = w.put(ctx, jobs); err != nil {
		return b, err
	}
	fmt.Fprintf(w.Log, "%s: %s jobs, due in %.1f s\n", w.Way.Name, thousands(n), time.Until(b.due).Seconds())
	if b.tardy > 0 {
		b.tally, err = w.drain(ctx, jobs, w.Sizes.Draining)
		return b, err
	}
	return b, w.watchBurst(ctx, jobs, &b)
}

// eve is when the watch begins, before the jobs are due.
const eve = 300 * time.Millisecond

// watchBurst measures the burst from shortly before the jobs are due.
func (w *world) watchBurst(ctx context.Context, jobs []way.Jobs, b *burstTally) error {
	if err := sleep(ctx, b.due.Add(-eve)); err != nil {
		return err
	}
	watch, err := w.stores.watchBlock(ctx)
	if err != nil {
		return err
	}
	defer watch.end()
	worker, err := servers.CPUOf(w.worker.pid)
	if err != nil {
		return err
	}
	store := w.stores.cpu()
	if b.tally, err = w.drain(ctx, jobs, w.Sizes.Draining); err != nil {
		return err
	}
	b.store = w.stores.cpu() - store
	if b.worker, err = servers.CPUOf(w.worker.pid); err != nil {
		return err
	}
	b.worker -= worker
	b.block, err = watch.between(ctx, b.due, b.last)
	return err
}
