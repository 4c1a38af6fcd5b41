package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/record"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// kill measures what becomes of jobs when their worker is killed in the middle and
// another one is started at once.
func kill(ctx context.Context, l *Lab) error {
	if why := unfit(l.Way.Name); why != "" {
		l.absent("kill-lost", 0, why)
		return nil
	}
	return l.in(ctx, l.Sizes.Killed, false, func(w *world) error {
		if err := w.startKilled(ctx); err != nil {
			return err
		}
		ended := func() bool { return w.rec.Ended() == w.used }
		if err := w.await(ctx, func() bool { return w.halfway() || ended() }); err != nil {
			return err
		}
		killed := time.Now()
		w.worker.kill()
		before := snapshot(w.rec.Slots())
		if err := w.spawn(Work{Takes: l.Sizes.Takes}); err != nil {
			return err
		}
		if err := w.mend(ctx, killed); err != nil {
			return err
		}
		w.tellKilled(before, killed)
		return nil
	})
}

// unfit is why a kill says nothing of a way; empty for most.
func unfit(name string) string {
	switch name {
	case "keyfuse-daemon":
		return "not measured: its handlers end in the daemon before they are told of here; those of the library are Keyfuse's own"
	case "scripts":
		return "not measured: handlers that take their time outlast the lease of a loop that runs one by one"
	}
	return ""
}

// startKilled starts the worker that is to be killed, and schedules its jobs. A way
// that lives in one process schedules them there.
func (w *world) startKilled(ctx context.Context) error {
	s := w.Sizes
	jobs := func() []way.Jobs {
		return spread(w.Way.Grain, w.number(s.Killed), s.Killed, time.Now().Add(s.Lead), s.KilledOver)
	}
	what := Work{Takes: s.Takes}
	if w.Way.Local() {
		what.Schedule = jobs()
	}
	if err := w.spawn(what); err != nil {
		return err
	}
	if err := w.await(ctx, func() bool { return w.rec.Workers() > 0 }); err != nil {
		return err
	}
	if w.Way.Local() {
		return nil
	}
	_, err := w.put(ctx, jobs())
	return err
}

// halfway is when half of the jobs have started and one is in flight: some ways have
// never many.
func (w *world) halfway() bool {
	started := w.rec.Started()
	return started >= w.used/2 && started > w.rec.Ended()
}

// mend waits until all jobs have ended, and then for those that come twice.
func (w *world) mend(ctx context.Context, killed time.Time) error {
	end := killed.Add(w.Sizes.Mending)
	err := w.await(ctx, func() bool {
		another := w.rec.Workers() > 1
		return another && w.rec.Ended() >= w.used || time.Now().After(end)
	})
	if err != nil || time.Now().After(end) {
		return err
	}
	return sleep(ctx, time.Now().Add(w.Sizes.Mending/20))
}

// seen is what was known of a job when the worker was killed.
type seen struct {
	starts int
	ended  bool
}

func (s seen) inFlight() bool { return s.starts > 0 && !s.ended }

func snapshot(slots []record.Slot) []seen {
	all := make([]seen, len(slots))
	for i := range slots {
		all[i] = seen{starts: slots[i].Starts(), ended: !slots[i].Done().IsZero()}
	}
	return all
}

// killTally is what became of the jobs of a worker that was killed.
type killTally struct {
	lost, twice     int
	inFlight, again int           // of those in flight, how many have started again
	until           time.Duration // from the kill until the last one of them did
}

func countKilled(slots []record.Slot, before []seen, killed time.Time) killTally {
	var t killTally
	for i, b := range before {
		s := &slots[i]
		allowed := 1 // another run, after the kill
		if b.ended {
			allowed = 0
		}
		if s.Starts()-b.starts > allowed {
			t.twice++
		}
		if s.Done().IsZero() {
			t.lost++
		}
		if b.inFlight() {
			t.inFlight++
			if s.Starts() > b.starts {
				t.again++
				t.until = max(t.until, s.Last().Sub(killed))
			}
		}
	}
	return t
}

func (w *world) tellKilled(before []seen, killed time.Time) {
	t := countKilled(w.rec.Slots(), before, killed)
	waited := ""
	if t.lost > 0 {
		waited = fmt.Sprintf("within %.0f s", w.Sizes.Mending.Seconds())
	}
	w.tell("kill-lost", 0, float64(t.lost), waited)
	w.tell("kill-twice", 0, float64(t.twice))
	some := fmt.Sprintf("%d of %d in flight ran again within %.0f s", t.again, t.inFlight, w.Sizes.Mending.Seconds())
	switch {
	case t.again == 0:
		w.absent("kill-again", 0, some)
	case t.again < t.inFlight:
		w.tell("kill-again", 0, t.until.Seconds(), some)
	default:
		w.tell("kill-again", 0, t.until.Seconds())
	}
}
