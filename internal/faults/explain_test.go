package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// runs judges the starts of each run together: each but the first needs a cause.
func (v *verdict) runs(starts []*start, describe func() string) {
	byRun := make(map[string][]*start, 1)
	for _, s := range starts {
		byRun[s.run] = append(byRun[s.run], s)
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		v.firings++
		all := byRun[run]
		// A daemon that was frozen after its claim may start a run late, which
		// another one took over and ended.
		slices.SortFunc(all, func(a, b *start) int { return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.at, b.at)) })
		for i, s := range all {
			v.starts++
			if s.settled == "" && s.proc.clean {
				v.unexplained = append(v.unexplained, fmt.Sprintf("run %s was never settled by %s, which ended as it should: %s", run, s.proc.name, describe()))
			}
			if i == 0 {
				continue
			}
			cause, ok := explain(all[i-1], s)
			if ok {
				v.duplicates[cause]++
				continue
			}
			if first := all[i-1]; v.book.mayForget(max(first.at, first.told), s.at) {
				v.forgotten["outcomes of runs, which were made again"]++
				continue
			}
			v.unexplained = append(v.unexplained, fmt.Sprintf("run %s started again: %s: %s", run, cause, describe()))
		}
	}
}

// Causes of a second start.
const (
	causeFailed = "the handler failed on purpose"
	causeKilled = "its daemon was killed"
	causeGiven  = "given back by a daemon that was stopped"
	causeLease  = "its daemon lost its lease"
	causeFrozen = "its daemon was frozen, and then killed"
	causeTwice  = "a call that got no answer had armed it, and was made again"
)

// explain says why a run was started for another attempt, and whether that is a
// reason.
func explain(first, again *start) (string, bool) {
	if again.attempt == first.attempt && first.settled != "returned" {
		return fmt.Sprintf("both are attempt %d", first.attempt), false
	}
	switch first.settled {
	case "retried":
		if first.end == endLease { // in time all the same: nobody had taken its runs
			return causeLease, true
		}
		return causeFailed, first.end == endFailed
	case "returned":
		return causeGiven, first.end != endOK
	case "lost":
		return causeLease, first.proc.lostLease(min(first.at, again.at))
	case "":
		return unsettled(first, again)
	}
	return "it was settled as " + first.settled, false
}

// unsettled explains a start after one whose outcome never got to Redis.
func unsettled(first, again *start) (string, bool) {
	p := first.proc
	switch {
	case p.gone != 0 && p.gone <= again.at && p.how == "killed":
		return causeKilled, true
	case p.gone != 0 && p.gone <= again.at:
		return "its daemon was stopped, and could not settle", !p.clean
	case p.lostLease(min(first.at, again.at)):
		return causeLease, true
	case slices.ContainsFunc(p.froze, func(f span) bool { return f.from < again.at && (f.to == 0 || f.to > again.at) }):
		return causeFrozen, true
	}
	return "its daemon " + p.name + " ran on, and had its lease", false
}

// leaseSaid is how long a daemon says it once for: in a cluster it has a lease a
// partition, and loses several in the same moment.
const leaseSaid = 3 * time.Second

// lostLease says that the daemon told since then that it had lost its lease.
func (p *proc) lostLease(since int64) bool {
	return slices.ContainsFunc(p.lost, func(at int64) bool { return at >= since-int64(leaseSaid) })
}
