// Package measure makes one measurement of one way to run delayed tasks: a Kind of
// measurement, in a process of its own, against servers that were started for it and
// are stopped again.
//
// What it promises: jobs are scheduled by this process and, unless a way lives in one
// process, run by another one, as in production; every value is told as soon as it is
// known, so that a measurement which is stopped leaves what it has; a value that is not
// what one would think has a note; and jobs that were not run are counted as that, and as
// late as they were when waiting for them ended.
//
// A measurement needs Linux: CPU times are those of /proc.
package measure

import (
	"context"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// A Kind of measurement gives one or more figures of a way.
type Kind struct {
	Name, What string
	// Counting: it is of the ways to fire at a threshold, not of those to run jobs.
	Counting bool
	// Schedules: jobs are only scheduled, so that ways which do no more take part.
	Schedules bool
	// Together: all ways may be measured at the same time, since no rate is measured.
	Together bool
	// Only is the name of the way that it is made for, unless others are asked for by
	// name; empty for all.
	Only string
	// Larger: it is another one with larger numbers, which the smoke form leaves out.
	Larger bool
	// Rounds are how many a whole comparison has.
	Rounds int
	// Guess is about how long it takes, with starting and stopping the servers.
	Guess time.Duration
	// Limit is when it is stopped.
	Limit time.Duration

	measure func(ctx context.Context, l *Lab) error
}

// All are the kinds of measurements, in the order in which they are made.
func All() []Kind {
	return []Kind{
		{
			Name: "schedule", What: "scheduling by one caller, by 32, and in bulk; memory a pending job",
			Schedules: true, Rounds: 3, Guess: 30 * time.Second, Limit: 3 * time.Minute, measure: schedule,
		},
		{
			Name: "burst", What: "50,000 jobs due at one moment",
			Rounds: 3, Guess: 18 * time.Second, Limit: 6 * time.Minute, measure: smallBurst,
		},
		{
			Name: "threshold", What: "hits of counters, and their firings",
			Counting: true, Rounds: 3, Guess: 15 * time.Second, Limit: 2 * time.Minute, measure: threshold,
		},
		{
			Name: "idle", What: "an idle worker: its commands and CPU",
			Together: true, Rounds: 3, Guess: 110 * time.Second, Limit: 4 * time.Minute, measure: idle,
		},
		{
			Name: "kill", What: "a kill -9 of the worker in the middle of 1,000 jobs",
			Together: true, Rounds: 1, Guess: 3 * time.Minute, Limit: 6 * time.Minute, measure: kill,
		},
		{
			Name: "lateness", What: "10,000 jobs over 30 s beside 0, 200,000 and 1,000,000 pending ones",
			Rounds: 1, Guess: 150 * time.Second, Limit: 8 * time.Minute, measure: lateness,
		},
		{
			Name: "big-burst", What: "500,000 jobs due at one moment",
			Larger: true, Rounds: 1, Guess: 45 * time.Second, Limit: 7 * time.Minute, measure: bigBurst,
		},
		{
			Name: "growth", What: "lateness and a burst beside 10,000 to 3,000,000 pending ones",
			Only: "keyfuse", Rounds: 1, Guess: 4 * time.Minute, Limit: 12 * time.Minute, measure: growth,
		},
	}
}

// Find is the kind with a name.
func Find(name string) (Kind, bool) {
	all := All()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Lab is what a measurement is made with.
type Lab struct {
	Way      way.Way      // of all kinds but those of Countings
	Counting way.Counting // of those
	Round    int
	Sizes    Sizes
	Dir      string // for the files of the servers and of this process; must be empty
	// Work is the command that does some Work in another process: it must call its Do.
	Work func(w Work) (*exec.Cmd, error)
	// Tell is called with each value as soon as it is known.
	Tell func(v result.Value)
	// Log gets what people may want to see while it goes on.
	Log io.Writer
}

// Measure makes one measurement. It is ErrMissing if the way can't be measured here;
// values may have been told before an error.
func (l *Lab) Measure(ctx context.Context, k Kind) error { return k.measure(ctx, l) }

// tell tells a value with what is to be known of it.
func (l *Lab) tell(figure string, size int, value float64, notes ...string) {
	l.Tell(l.value(figure, size, value, notes))
}

// absent tells why there is no value.
func (l *Lab) absent(figure string, size int, why string) {
	v := l.value(figure, size, 0, []string{why})
	v.Absent = true
	l.Tell(v)
}

// tellUnless tells a value, or that there is none if there is a reason.
func (l *Lab) tellUnless(why, figure string, size int, value float64, notes ...string) {
	if why != "" {
		l.absent(figure, size, why)
		return
	}
	l.tell(figure, size, value, notes...)
}

func (l *Lab) value(figure string, size int, value float64, notes []string) result.Value {
	name := l.Way.Name
	if name == "" {
		name = l.Counting.Name
	}
	return result.Value{Way: name, Figure: figure, Size: size, Round: l.Round, Value: value, Note: joined(notes)}
}
