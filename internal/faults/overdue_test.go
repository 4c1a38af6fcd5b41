package faults

import (
	"slices"
	"strings"
	"time"
)

// overdue are the jobs that are known to have been due by now and that something still has to run of.
func (h *harness) overdue(now time.Time) []*job {
	h.poll()
	var jobs []*job
	h.book.locked(func() {
		for j := range h.book.open {
			if due, known := j.lastDue(); known && due <= now.UnixNano() {
				jobs = append(jobs, j)
			}
		}
	})
	return jobs
}

// areServed says that all of some jobs have run, or run now.
func (b *book) areServed(jobs []*job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(jobs, func(j *job) bool { return b.open[j] && !slices.ContainsFunc(j.starts, serves) })
}

// serves says that a handler ran to its end, or may still do so.
func serves(s *start) bool { return s.end == endOK || s.ended == 0 && s.proc.gone == 0 }

func (b *book) countOpen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// describeOpen says all that is known of some jobs that have not run.
func (b *book) describeOpen(jobs []*job) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var text strings.Builder
	n := 0
	for _, j := range jobs {
		if b.open[j] && !slices.ContainsFunc(j.starts, serves) && n < 10 {
			text.WriteString(j.String() + "\n")
			n++
		}
	}
	return text.String()
}

// servedAfter is how long after a time the last of some jobs was started.
func (b *book) servedAfter(jobs []*job, since time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var longest time.Duration
	for _, j := range jobs {
		if i := slices.IndexFunc(j.starts, serves); i >= 0 {
			longest = max(longest, time.Duration(j.starts[i].at-since.UnixNano()))
		}
	}
	return longest
}
