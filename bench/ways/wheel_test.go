package ways

import (
	"maps"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func TestWheelTurnsToWhatIsDue(t *testing.T) {
	w := &wheel{begun: time.Now()}
	for range 700 { // not the first round any more
		w.turn()
	}
	want := map[int]int{} // ticks by jobs
	for n, ticks := range map[int]float64{
		1: 700, 2: 3, // over
		3: 700.01, 4: 701, 5: 701.01, // at the next tick, and the one after
		6: 1211, 7: 1212, 8: 1213, // around a round
		9: 700 + 4*wheelSlots, 10: 701 + 4*wheelSlots,
	} {
		due := w.begun.Add(time.Duration(ticks * float64(wheelTick)))
		w.add(way.Job{N: n, Due: due})
		want[n] = max(701, int(ticks))
		if ticks != float64(int(ticks)) {
			want[n] = int(ticks) + 1
		}
	}
	got := map[int]int{}
	for range 5 * wheelSlots {
		for _, n := range w.turn() {
			got[n] = w.tick
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
