//go:build unix

package redistest

import (
	"slices"
	"testing"
)

func TestLineOfClusterNodes(t *testing.T) {
	n, err := parseNode("07c3 127.0.0.1:30004@40004,host myself,master - 0 1426 4 connected 0-2 5 [7->-292f] [9-<-292f]\n")
	if err != nil {
		t.Fatal(err)
	}
	if n.id != "07c3" || n.addr != "127.0.0.1:30004" || n.master != "-" || n.epoch != 4 || !n.linked || !n.is("myself") {
		t.Errorf("parsed %+v", n)
	}
	if got := n.owned(); !slices.Equal(got, []int{0, 1, 2, 5}) {
		t.Errorf("slots %v", got)
	}
	for _, bad := range []string{"", "07c3 127.0.0.1:30004@40004 master", "a b c d 0 0 epoch connected"} {
		if _, err := parseNode(bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}
