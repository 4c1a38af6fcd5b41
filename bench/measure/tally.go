package measure

import (
	"fmt"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/record"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// tally is what became of jobs.
type tally struct {
	late                []time.Duration // of all jobs, the least first
	early, twice, unrun int
	ended               int
	astray              int       // runs of jobs that were only pending: early too
	last                time.Time // when the last one that ended did
	waited              time.Time // until when
}

// count counts what was recorded of jobs by a time.
func count(slots []record.Slot, groups []way.Jobs, now time.Time) tally {
	t := tally{waited: now}
	for _, jobs := range groups {
		for i := range jobs.Count {
			job := jobs.Job(i)
			t.add(&slots[job.N], job.Due)
		}
	}
	slices.Sort(t.late)
	return t
}

func (t *tally) add(s *record.Slot, due time.Time) {
	if !s.Done().IsZero() {
		t.ended++
		if s.Done().After(t.last) {
			t.last = s.Done()
		}
	}
	started := s.First()
	if started.IsZero() || s.Done().IsZero() {
		t.unrun++
	}
	if started.IsZero() {
		started = t.waited
	}
	if started.Before(due) {
		t.early++
	}
	if s.Starts() > 1 {
		t.twice++
	}
	t.late = append(t.late, started.Sub(due))
}

// percentile is the lateness in milliseconds that a share of the jobs kept: 1 for all.
func (t tally) percentile(share float64) float64 {
	i := int(share*float64(len(t.late))+0.5) - 1
	return millis(t.late[max(0, min(i, len(t.late)-1))])
}

// note says that the lateness of some is not known.
func (t tally) note() string {
	if t.unrun == 0 {
		return ""
	}
	return fmt.Sprintf("at least: %s of %s jobs had not run when waiting for them ended", thousands(t.unrun), thousands(len(t.late)))
}

// beyond is the note of a percentile: nothing if all jobs within it have run.
func (t tally) beyond(share float64) string {
	if float64(t.unrun) <= float64(len(t.late))*(1-share) {
		return ""
	}
	return t.note()
}

// strays notes what is early although it has no part in what is measured.
func (t tally) strays() string {
	if t.astray == 0 {
		return ""
	}
	return fmt.Sprintf("%s runs of jobs that should only wait, hours before they are due", thousands(t.astray))
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// lastDue is when the last of them is due.
func lastDue(groups []way.Jobs) time.Time {
	last := groups[len(groups)-1]
	return last.Job(last.Count - 1).Due
}
