package faults

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// planned is what the schedule breaks at a time: one fault, or two.
type planned struct {
	faults []fault
	hold   time.Duration // for how long
	seed   uint64        // of what the faults draw
}

func (p planned) String() string {
	names := make([]string, len(p.faults))
	for i, f := range p.faults {
		names[i] = f.name
	}
	return strings.Join(names, ", and ") + " for " + p.hold.String()
}

// kind is under which name a report counts it.
func (p planned) kind() string {
	if len(p.faults) > 1 {
		return "two at once"
	}
	return p.faults[0].name
}

// drawPlan draws n faults: all kinds in an order of chance, then all of them
// again in another. Once each kind has been alone, one in three comes with
// another, and one in sixteen lasts longer than a lease.
func drawPlan(rng *rand.Rand, kinds []fault, n int, lease time.Duration) []planned {
	var plan []planned
	var order []int
	for len(plan) < n {
		if len(order) == 0 {
			order = rng.Perm(len(kinds))
		}
		p := planned{faults: []fault{kinds[order[0]]}, seed: rng.Uint64()}
		order = order[1:]
		again := len(plan) >= len(kinds)
		if other := kinds[rng.IntN(len(kinds))]; again && rng.IntN(3) == 0 && other.at != p.faults[0].at {
			p.faults = append(p.faults, other)
		}
		long := again && rng.IntN(16) == 0 || slices.ContainsFunc(p.faults, func(f fault) bool { return f.long })
		p.hold = drawHold(rng, long, lease)
		plan = append(plan, p)
	}
	return plan
}

func drawHold(rng *rand.Rand, long bool, lease time.Duration) time.Duration {
	hold := 200*time.Millisecond + drawUpTo(rng, 1300*time.Millisecond)
	if long {
		hold = lease + drawUpTo(rng, lease/2)
	}
	return hold.Round(time.Millisecond)
}
