package faults

import "slices"

// What has to run, what may run, and when: this follows from a job's steps alone.

// wants are the armings that have to run, of each group any one: usually a group
// is one arming; where an answer was lost, and a later call found the job armed,
// nobody knows which of the earlier ones it was.
func (j *job) wants() [][]int {
	var groups [][]int
	var tries []int
	for i, s := range j.steps {
		if s.replace && (s.answer == replaced || s.answer == unknown) {
			groups = nil // what was pending is gone, or may be
		}
		switch {
		case s.op == cancel && s.answer != running:
			groups, tries = nil, nil
		case s.op != arm && s.op != bare:
		case s.answer == unknown:
			tries = append(tries, i)
		case s.answer == kept:
			groups = append(groups, slices.Clone(tries))
		default:
			groups = append(groups, []int{i})
		}
	}
	return groups
}

// missing are the groups of which nothing has run to its end.
func (j *job) missing() [][]int {
	return slices.DeleteFunc(j.wants(), func(group []int) bool {
		return slices.ContainsFunc(j.starts, func(s *start) bool {
			return s.end == endOK && (slices.Contains(group, s.serial) || j.overtook(s, group[len(group)-1]))
		})
	})
}

// A call without an answer may still come: a half-open path or a frozen Redis holds it
// back, and calls that were made after it, on other connections, are answered first.

// overtook says that a run is of an arming that was held back: it came behind a later
// one that was acknowledged, and overwrote it.
func (j *job) overtook(s *start, n int) bool {
	if s.serial >= n || j.steps[s.serial].answer != unknown || s.at <= j.steps[n].acked {
		return false
	}
	first, later := j.steps[s.serial], j.steps[n]
	return first.op == bare && later.op == bare || first.replace && later.op == arm
}

// cameAfter says that a run is of an arming that was held back beyond the step n: a
// later arming found nothing, when that one was not yet due and would have been there.
// One that replaces is not told from one that a later one replaced, unless it says by
// its due time when it came.
func (j *job) cameAfter(s *start, n int) bool {
	first := j.steps[s.serial]
	if first.answer != unknown {
		return false
	}
	if first.replace {
		return first.sent+s.due-first.floor >= j.steps[n].sent || s.due == first.floor
	}
	return slices.ContainsFunc(j.steps[s.serial+1:], func(later step) bool {
		return later.op == arm && later.answer == done && later.acked < s.due
	})
}

// isMurky says that the job may have been armed more often than it was
// acknowledged, so that there may be a run and a pending job at a time.
func (j *job) isMurky() bool {
	armings := 0
	for i := range j.steps {
		if j.isArming(i) {
			armings++
		}
	}
	return armings > 1
}

// lastDue is when the job is due at the latest, and whether that is known: not while
// a call about it has no answer, for that may have made it due later.
func (j *job) lastDue() (due int64, known bool) {
	for i, s := range j.steps {
		switch {
		case s.op == cancel:
		case s.answer == unknown:
			due, known = max(due, s.floor), known && i < len(j.steps)-1
		case s.answer == done || s.answer == kept || s.answer == replaced:
			due, known = max(due, s.due, s.floor), true
		}
	}
	return due, known
}

// slot is a due time that an arming has or may have had.
type slot struct {
	due   int64 // 0 if it is not known
	floor int64
	acked int64
	held  bool // of a change without an answer, which may still come
}

// slots are the due times that an arming may have had when a handler started.
// What was changed and acknowledged before that counts no more.
func (j *job) slots(serial int, at int64) []slot {
	s := j.steps[serial]
	slots := []slot{{due: s.due, floor: s.floor, acked: s.acked}}
	for _, s := range j.steps[serial+1:] {
		var next slot
		switch {
		case s.op == move && !s.retry:
			next = slot{due: s.due, floor: s.floor, acked: s.acked}
		case s.op == move:
			next = slot{floor: s.floor, acked: s.acked}
		case s.op == fuse, s.op == bare: // both set the fuse
			next = slot{floor: s.floor, acked: s.acked}
		default:
			continue
		}
		next.held = s.answer == unknown
		if s.answer == done && s.acked < at && j.counts(serial, s, slots) {
			slots = slices.DeleteFunc(slots, func(s slot) bool { return !s.held })
		}
		if s.sent < at {
			slots = append(slots, next)
		}
	}
	return slots
}

// counts says that a change that was acknowledged is known to have been one of
// this arming, so that its earlier due times are gone. A raw SET of a fuse says
// not what it met: it counts if it was answered before the job was due.
func (j *job) counts(serial int, change step, slots []slot) bool {
	if change.op == fuse {
		return !slices.ContainsFunc(slots, func(s slot) bool { return s.floor <= change.acked })
	}
	return !j.isMurky() || serial == j.lastArming()
}

func (j *job) lastArming() int {
	last := len(j.steps) - 1
	for !j.isArming(last) {
		last--
	}
	return last
}

// isArming says that a step of this number arms the job.
func (j *job) isArming(n int) bool {
	return n >= 0 && n < len(j.steps) && (j.steps[n].op == arm || j.steps[n].op == bare)
}
