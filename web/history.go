package web

import (
	"math"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/engine"
)

// The history is of this process alone, and of its last hour.
const (
	historySlot  = 10 * time.Second
	historySlots = 360
)

// History is what a node has fired lately, for the dashboard's charts. Make it with
// NewHistory.
type History struct {
	now func() time.Time

	mu    sync.Mutex
	slots [historySlots]slot
}

// slot is ten seconds of it.
type slot struct {
	number        int64 // how many slots since 1970; another one's content is old
	fired, failed int64
	late          [lateBuckets]uint32 // of starts, by lateness
	starts        uint32
}

// Lateness is kept in steps of a fifth, from a tenth of a millisecond to some hours.
const (
	lateBuckets = 96
	lateFirst   = 100 * time.Microsecond
	lateStep    = 1.2
)

// NewHistory makes an empty history. now is time.Now, but in tests.
func NewHistory(now func() time.Time) *History { return &History{now: now} }

// Settled notes a firing; it is for an engine.Observer.
func (h *History) Settled(f engine.Firing) {
	number := h.now().UnixNano() / int64(historySlot)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.slots[number%historySlots]
	if s.number != number {
		*s = slot{number: number}
	}
	s.fired++
	switch f.Outcome {
	case engine.Retried, engine.Died, engine.Lost:
		s.failed++
	case engine.Done, engine.Discarded, engine.Returned:
	}
	if f.Job.Attempt <= 1 { // later attempts are late by what their waits are
		s.late[lateBucket(f.Late)]++
		s.starts++
	}
}

func lateBucket(late time.Duration) int {
	if late <= lateFirst {
		return 0
	}
	n := int(math.Ceil(math.Log(float64(late)/float64(lateFirst)) / math.Log(lateStep)))
	return min(n, lateBuckets-1)
}

// moment is a minute of the history.
type moment struct {
	At            time.Time // when it began
	Fired, Failed int64
	P50, P99      time.Duration // lateness; zero if nothing started
}

const perMoment = int64(time.Minute / historySlot)

// minutes are the last sixty, the oldest first; the last one is still going on.
func (h *History) minutes() []moment {
	last := h.now().UnixNano() / int64(time.Minute)
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]moment, 0, 60)
	for minute := last - 59; minute <= last; minute++ {
		m := moment{At: time.Unix(0, minute*int64(time.Minute))}
		var late [lateBuckets]uint32
		starts := uint32(0)
		for number := minute * perMoment; number < (minute+1)*perMoment; number++ {
			s := &h.slots[number%historySlots]
			if s.number != number {
				continue
			}
			m.Fired += s.fired
			m.Failed += s.failed
			starts += s.starts
			for i, n := range s.late {
				late[i] += n
			}
		}
		m.P50, m.P99 = quantile(late[:], starts, 0.5), quantile(late[:], starts, 0.99)
		all = append(all, m)
	}
	return all
}

// quantile is the upper end of the bucket that holds it.
func quantile(buckets []uint32, n uint32, share float64) time.Duration {
	if n == 0 {
		return 0
	}
	want, seen := uint32(math.Ceil(share*float64(n))), uint32(0)
	for i, count := range buckets {
		if seen += count; seen >= want {
			return time.Duration(float64(lateFirst) * math.Pow(lateStep, float64(i)))
		}
	}
	return 0
}
