package measure

import (
	"fmt"
	"strings"
	"time"
)

// Sizes are how much is measured, and how long it may take.
type Sizes struct {
	Weighed         int           // jobs whose memory is measured
	One, Many, Bulk int           // jobs that are scheduled by one caller, by Callers, in bulk
	Scheduling      time.Duration // each of those is stopped after that

	Spread  int           // jobs whose lateness is measured
	Over    time.Duration // which they are spread over
	Lead    time.Duration // from when scheduling them begins until the first is due
	Pending []int         // jobs beside those
	Growing []int         // the same for the growth
	Loading time.Duration // scheduling the pending ones of one level is stopped after that

	Burst, BigBurst int           // jobs due at one moment
	Ahead           time.Duration // scheduling them may take so long, else there are fewer
	Draining        time.Duration // waiting for them is stopped after that
	Quiet           time.Duration // and for any jobs once none has run for so long

	Counting, Idle time.Duration // an idle worker's commands are counted, and then its CPU is watched, for so long

	Killed     int           // jobs that are scheduled when a worker is killed
	KilledOver time.Duration // which they are spread over
	Takes      time.Duration // how long each of their handlers takes
	Mending    time.Duration // waiting until they have run again is stopped after that

	OneHits, ManyHits, BulkHits int // hits by one caller, by Callers, in bulk
}

// Callers are how many schedule at a time where many do.
const Callers = 32

// Counters are how many counters get hits.
const Counters = 100

// Full are the sizes of a comparison.
func Full() Sizes {
	return Sizes{
		Weighed: 20_000, One: 40_000, Many: 120_000, Bulk: 400_000, Scheduling: 10 * time.Second,
		Spread: 10_000, Over: 30 * time.Second, Lead: 5 * time.Second, Loading: 75 * time.Second,
		Pending: []int{0, 200_000, 1_000_000},
		Growing: []int{10_000, 100_000, 1_000_000, 3_000_000},
		Burst:   50_000, BigBurst: 500_000,
		Ahead: 60 * time.Second, Draining: 30 * time.Second, Quiet: 20 * time.Second,
		Counting: 20 * time.Second, Idle: 60 * time.Second,
		Killed: 1_000, KilledOver: 5 * time.Second, Takes: 100 * time.Millisecond, Mending: 150 * time.Second,
		OneHits: 20_000, ManyHits: 100_000, BulkHits: 200_000,
	}
}

// Smoke are sizes that only show that all of it works.
func Smoke() Sizes {
	return Sizes{
		Weighed: 300, One: 50, Many: 300, Bulk: 500, Scheduling: 2 * time.Second,
		Spread: 100, Over: time.Second, Lead: time.Second, Loading: 2 * time.Second,
		Pending: []int{0, 500},
		Growing: []int{200, 500},
		Burst:   500, BigBurst: 1_000,
		Ahead: 3 * time.Second, Draining: 10 * time.Second, Quiet: 5 * time.Second,
		Counting: 300 * time.Millisecond, Idle: 500 * time.Millisecond,
		Killed: 40, KilledOver: 2 * time.Second, Takes: 300 * time.Millisecond, Mending: 3 * time.Second,
		OneHits: 500, ManyHits: 1_000, BulkHits: 2_000,
	}
}

// Named are the sizes of a name: full or smoke.
func Named(name string) (Sizes, error) {
	switch name {
	case "full":
		return Full(), nil
	case "smoke":
		return Smoke(), nil
	}
	return Sizes{}, fmt.Errorf("there is no size %q: want full or smoke", name)
}

// joined are the notes that are not empty.
func joined(notes []string) string {
	var said []string
	for _, n := range notes {
		if n != "" {
			said = append(said, n)
		}
	}
	return strings.Join(said, "; ")
}
