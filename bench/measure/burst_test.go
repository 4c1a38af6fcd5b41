package measure

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// slow is a way whose bulk call is over only when the jobs are due, so many times.
type slow struct {
	*timers
	late *atomic.Int64
}

func (w slow) Bulk(ctx context.Context, jobs way.Jobs) error {
	if err := w.Single(ctx, jobs, 1); err != nil {
		return err
	}
	if time.Until(jobs.First) > time.Hour || w.late.Add(-1) < 0 {
		return nil
	}
	return sleep(ctx, jobs.First.Add(time.Millisecond))
}

func slowWay(late int64) way.Way {
	left := &atomic.Int64{}
	left.Store(late)
	return way.Way{Name: "slow", Open: func(context.Context, way.Env) (way.Instance, error) {
		return slow{&timers{due: make(chan int, 10_000)}, left}, nil
	}}
}

func TestABurstThatIsLateIsMadeAgain(t *testing.T) {
	t.Parallel()
	got := measured(t, "burst", Lab{Way: slowWay(1), Sizes: tiny()})
	for _, figure := range []string{"burst-rate", "burst-late-p99", "burst-cpu-worker"} {
		if v := got[figure][0]; v.Absent || v.Note != "" || len(got[figure]) != 1 {
			t.Errorf("%+v: want the second burst's only", got[figure])
		}
	}
	if rate := got["burst-rate"][0].Value; rate <= 0 {
		t.Errorf("%v runs/s", rate)
	}
}

func TestABurstThatIsLateTwiceHasNoTimes(t *testing.T) {
	t.Parallel()
	got := measured(t, "burst", Lab{Way: slowWay(2), Sizes: tiny()})
	for _, figure := range []string{"burst-rate", "burst-late-p50", "burst-late-p99", "burst-cpu-worker"} {
		if v := got[figure][0]; !v.Absent || !strings.Contains(v.Note, "after they were due") {
			t.Errorf("%+v: want it absent, and why", v)
		}
	}
	for _, figure := range []string{"burst-early", "burst-unrun", "burst-twice"} {
		if v := got[figure][0]; v.Absent || v.Value != 0 {
			t.Errorf("%+v: want none", v)
		}
	}
}

// hasty is a way that runs what is due hours from now at once.
type hasty struct{ *timers }

func (w hasty) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	if time.Until(jobs.First) > time.Hour {
		jobs.First, jobs.Step = time.Now(), 0
	}
	return w.timers.Single(ctx, jobs, callers)
}

func hastyWay() way.Way {
	return way.Way{Name: "hasty", Open: func(context.Context, way.Env) (way.Instance, error) {
		return hasty{&timers{due: make(chan int, 10_000)}}, nil
	}}
}

func TestRunsOfPendingJobsAreEarly(t *testing.T) {
	t.Parallel()
	sizes := tiny()
	for _, test := range []struct {
		kind, figure string
		want         []int
	}{
		{"burst", "burst-early", []int{probed(sizes.Burst)}},
		{"lateness", "early", sizes.Pending}, // each level tells of its own
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			got := measured(t, test.kind, Lab{Way: hastyWay(), Sizes: sizes})[test.figure]
			if len(got) != len(test.want) {
				t.Fatalf("%+v: want %v", got, test.want)
			}
			for i, v := range got {
				if int(v.Value) != test.want[i] || (v.Value > 0) != strings.Contains(v.Note, "should only wait") {
					t.Errorf("%+v: want %d, and a note of them", v, test.want[i])
				}
			}
		})
	}
}

// Where jobs run in the order in which they were scheduled, the probe's must run too.
func TestTheProbeOfAWayInOrderIsNotEarly(t *testing.T) {
	t.Parallel()
	how := timersWay(10_000)
	how.InOrder = true
	got := measured(t, "burst", Lab{Way: how, Sizes: tiny()})
	if early, unrun := got["burst-early"][0], got["burst-unrun"][0]; early.Value != 0 || unrun.Value != 0 {
		t.Errorf("%v early, %v unrun: want none", early, unrun)
	}
}
