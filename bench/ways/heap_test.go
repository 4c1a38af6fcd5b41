package ways

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHeapGivesTheEarliestFirst(t *testing.T) {
	var h heap
	want := make([]int64, 1000)
	first := int64(1 << 60)
	for i := range want {
		want[i] = rand.Int64N(300)
		if got := h.push(delayed{due: want[i], n: i}); got != (want[i] < first) {
			t.Fatalf("push of %d after %d says first: %t", want[i], first, got)
		}
		first = min(first, want[i])
	}
	slices.Sort(want)
	got := make([]int64, len(want))
	for i := range got {
		got[i] = h.pop().due
	}
	if !slices.Equal(got, want) || len(h.jobs) != 0 {
		t.Errorf("got %v and %d are left, want %v", got, len(h.jobs), want)
	}
}
