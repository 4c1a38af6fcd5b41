package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/measure"
	"github.com/keyfuse-io/keyfuse/bench/result"
)

// unit is one measurement of one way in one round.
type unit struct {
	kind  measure.Kind
	way   string
	round int
}

// is says whether a run was one of it.
func (u unit) is(r result.Run) bool {
	return r.Figure == u.kind.Name && r.Way == u.way && r.Round == u.round
}

// batch are units that are made at the same time: mostly one.
type batch []unit

// plan goes through the ways in turn, round after round, for each kind. Each round begins
// at another way, so that none is always the first, or always late in a round.
func plan(kinds []measure.Kind, ways func(measure.Kind) []string) []batch {
	var all []batch
	for _, k := range kinds {
		for round := range k.Rounds {
			var together batch
			for _, w := range rotated(ways(k), round, k.Rounds) {
				u := unit{k, w, round}
				if k.Together {
					together = append(together, u)
				} else {
					all = append(all, batch{u})
				}
			}
			if len(together) > 0 {
				all = append(all, together)
			}
		}
	}
	return all
}

// rotated are the ways in the order of a round.
func rotated(ways []string, round, rounds int) []string {
	first := round * len(ways) / rounds
	return slices.Concat(ways[first:], ways[:first])
}

// left is what has not been measured without a failure.
func left(all []batch, runs []result.Run) []batch {
	var left []batch
	for _, b := range all {
		b = slices.DeleteFunc(slices.Clone(b), func(u unit) bool {
			return slices.ContainsFunc(runs, func(r result.Run) bool { return u.is(r) && r.Failed == "" })
		})
		if len(b) > 0 {
			left = append(left, b)
		}
	}
	return left
}

// smokeGuess is how long a measurement takes in the smoke size, all ways at once.
const smokeGuess = 10 * time.Second

// smokeLimit is when one is stopped that should take so long.
const smokeLimit = 60 * time.Second

// expect is about how long a batch takes: as it did before, else as one would guess.
func expect(b batch, runs []result.Run) time.Duration {
	var most time.Duration
	for _, u := range b {
		most = max(most, u.expect(runs))
	}
	return most
}

func (u unit) expect(runs []result.Run) time.Duration {
	same := func(r result.Run) bool { return r.Figure == u.kind.Name && r.Way == u.way }
	if took, ok := mean(runs, same); ok {
		return took
	}
	return u.kind.Guess
}

// mean is how long some of the runs took; ok is false if there are none.
func mean(runs []result.Run, some func(result.Run) bool) (took time.Duration, ok bool) {
	n, sum := 0, 0.0
	for _, r := range runs {
		if some(r) {
			n++
			sum += r.Took
		}
	}
	if n == 0 {
		return 0, false
	}
	return time.Duration(sum / float64(n) * float64(time.Second)), true
}

func expectAll(all []batch, runs []result.Run) time.Duration {
	var sum time.Duration
	for _, b := range all {
		sum += expect(b, runs)
	}
	return sum
}

// printPlan says how long each kind will take.
func (c *comparison) printPlan() {
	for _, k := range measure.All() {
		some := slices.DeleteFunc(slices.Clone(c.batches), func(b batch) bool { return b[0].kind.Name != k.Name })
		if len(some) == 0 {
			continue
		}
		units, last := 0, some[len(some)-1][0]
		for _, b := range some {
			units += len(b)
		}
		fmt.Fprintf(c.app.stdout, "%-10s %8s  %d measurements, rounds: %d\n",
			k.Name, minutes(expectAll(some, c.results.Runs)), units, last.round+1)
	}
	fmt.Fprintf(c.app.stdout, "%-10s %8s\n", "all", minutes(expectAll(c.batches, c.results.Runs)))
}

func minutes(d time.Duration) string { return fmt.Sprintf("%.1f min", d.Minutes()) }
