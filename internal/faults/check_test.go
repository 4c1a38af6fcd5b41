package faults

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// verdict is what the check found.
type verdict struct {
	book *book

	lost, early, cancelled, unexplained, counts []string // with all that is known

	jobs       map[string]int // by kind
	firings    int            // runs, each counted once
	starts     int            // handlers that were called
	duplicates map[string]int // by what explains them
	hits       int64          // acknowledged
	fired      int64          // counted by firings
	crossings  int            // firings of counters
	forgotten  map[string]int // what a failover lost of what no replica had confirmed
	drift      time.Duration  // of due times in slots that were moved
}

// problems are all findings, the worst first.
func (v *verdict) problems() []string {
	var all []string
	for _, kind := range []struct {
		name string
		list []string
	}{
		{"lost", v.lost},
		{"early", v.early},
		{"ran though cancelled, moved or replaced", v.cancelled},
		{"unexplained", v.unexplained},
		{"counts", v.counts},
	} {
		for _, text := range kind.list {
			all = append(all, kind.name+": "+text)
		}
	}
	return all
}

// check judges all that is in the book, when nothing can come any more.
func (b *book) check() *verdict {
	v := &verdict{book: b, jobs: make(map[string]int), duplicates: make(map[string]int), forgotten: make(map[string]int)}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
		v.job(b.jobs[id])
	}
	for _, id := range slices.Sorted(maps.Keys(b.counters)) {
		v.counter(b.counters[id])
	}
	v.unexplained = append(v.unexplained, b.strays...)
	v.unexplained = append(v.unexplained, b.refused...)
	return v
}

func (v *verdict) job(j *job) {
	v.jobs[j.kind]++
	for _, group := range j.missing() {
		v.lost = append(v.lost, fmt.Sprintf("armed by step %v and never run to its end: %s", group, j))
	}
	for _, s := range j.starts {
		v.start(j, s)
	}
	v.runs(j.starts, j.String)
	v.firing(j)
}

// firing judges whether each arming fired once.
func (v *verdict) firing(j *job) {
	serials := make(map[int]*start)
	for _, s := range j.starts {
		other := serials[s.serial]
		switch {
		case other == nil:
			serials[s.serial] = s
		case other.run == s.run:
		case v.book.mayForget(min(other.at, s.at), max(other.at, s.at)):
			v.forgotten["firings, which came again"]++
		default:
			v.unexplained = append(v.unexplained, fmt.Sprintf("step %d fired twice, as runs %s and %s: %s", s.serial, other.run, s.run, j))
		}
	}
	for serial := range serials {
		if len(serials) > 1 && j.isArming(serial) && j.steps[serial].answer == unknown {
			v.duplicates[causeTwice]++
		}
	}
}

// start judges one start of a handler by itself.
func (v *verdict) start(j *job, s *start) {
	if !j.isArming(s.serial) {
		v.unexplained = append(v.unexplained, fmt.Sprintf("run %s has a payload that nobody gave it: %s", s.run, j))
		return
	}
	if s.at < s.due {
		v.early = append(v.early, fmt.Sprintf("run %s started %s before its own due time: %s", s.run, time.Duration(s.due-s.at), j))
		return
	}
	if n := j.forbids(s); n >= 0 && v.book.mayForget(j.steps[n].acked, s.at) {
		v.forgotten["cancellations"]++
	} else if n >= 0 {
		v.cancelled = append(v.cancelled, fmt.Sprintf("run %s started although step %d was acknowledged %s before: %s", s.run, n, time.Duration(s.at-j.steps[n].acked), j))
	}
	v.due(j, s)
}

// due judges a start by the due times that counted when it was made.
func (v *verdict) due(j *job, s *start) {
	known, earliest := false, int64(0)
	for i, slot := range j.slots(s.serial, s.at) {
		if s.at >= slot.floor && (slot.due == 0 || slot.due == s.due || v.isOther(slot, s) || v.drifted(j, slot, s)) {
			return
		}
		known = known || slot.due == s.due
		if i == 0 || slot.floor < earliest {
			earliest = slot.floor
		}
	}
	if s.at < earliest {
		v.early = append(v.early, fmt.Sprintf("run %s started %s before it was due: %s", s.run, time.Duration(earliest-s.at), j))
	} else if !known {
		v.cancelled = append(v.cancelled, fmt.Sprintf("run %s started at a due time that did not count any more: %s", s.run, j))
	}
}

// isOther says that a run may be of a call that a failover made the connection make
// again, since its effect was lost: only that of the second one was answered.
func (v *verdict) isOther(slot slot, s *start) bool {
	return len(v.book.forgot) > 0 && s.at < slot.acked
}

// maxDrift is how much later a fuse may end in a slot that was moved: its key went
// there with the time that it had left, and that took a moment.
const maxDrift = time.Second

// drifted says that a job's slot may have been moved, and its due time with it.
func (v *verdict) drifted(j *job, slot slot, s *start) bool {
	drift := time.Duration(s.due - slot.due)
	moved := slices.ContainsFunc(v.book.moved, func(m span) bool { return m.from < s.at && (m.to == 0 || m.to > j.steps[0].sent) })
	if !moved || drift < 0 || drift > maxDrift {
		return false
	}
	v.drift = max(v.drift, drift)
	return true
}

// forbids is the acknowledged step that was there before a start and should have
// kept it from happening, or -1.
func (j *job) forbids(s *start) int {
	for n := s.serial + 1; n < len(j.steps); n++ {
		step := j.steps[n]
		if step.acked == 0 || step.acked >= s.at {
			continue
		}
		gone := step.op == cancel && (step.answer == done || step.answer == gone) || step.op == arm && step.answer == replaced
		if gone && !(j.isMurky() && j.startedBefore(s, step.acked)) && !j.cameAfter(s, n) {
			return n
		}
	}
	return -1
}

// startedBefore says that a run had started by then: a change that meets both a
// run and a pending job changes the pending one. A run of which no first attempt is on
// record was claimed before, at a time that nobody knows, by a daemon that never began
// it.
func (j *job) startedBefore(s *start, at int64) bool {
	begun := s.attempt > 1 && s.due < at
	for _, other := range j.starts {
		if other.run != s.run {
			continue
		}
		if other.at < at {
			return true
		}
		begun = begun && other.attempt > 1
	}
	return begun
}

func (v *verdict) counter(c *counter) {
	v.runs(c.starts, c.String)
	var fired int64
	counted := make(map[string]int64)
	for _, s := range c.starts {
		if s.at < s.due {
			v.early = append(v.early, fmt.Sprintf("run %s started %s before its window's end: %s", s.run, time.Duration(s.due-s.at), c))
		}
		if s.end == endOK {
			counted[s.run] = s.count
		}
	}
	for _, n := range counted {
		fired += n
	}
	v.hits += c.acked
	v.fired += fired
	v.crossings += len(counted)
	few, many := max(0, c.acked-fired), max(0, fired-c.acked-c.unknown)
	switch {
	case few+many > 0 && len(v.book.forgot) > 0:
		if few > 0 {
			v.forgotten["hits"] += int(few)
		} else {
			v.forgotten["hits that counted twice"] += int(many)
		}
	case few+many > 0:
		v.counts = append(v.counts, fmt.Sprintf("%d hits were acknowledged, %d more got no answer, and firings count %d: %s", c.acked, c.unknown, fired, c))
	}
}
