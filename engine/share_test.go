package engine

import (
	"context"
	"testing"

	"github.com/keyfuse-io/keyfuse/registry"
)

func TestASubscriptionThatEndsLateLeavesTheNextOnesWatch(t *testing.T) {
	live := &liveness{tell: func(string) {}}
	forgetOld := live.onSilence(func() { t.Error("the old subscription is told") })
	told := false
	live.onSilence(func() { told = true })
	forgetOld()
	for range canaryBeats {
		live.beating()
	}
	if live.check(); !told {
		t.Error("nobody watches the new subscription")
	}

	counting := newCounters()
	forgetOld = counting.onChange(func() { t.Error("the old subscription is told") })
	changed := false
	counting.onChange(func() { changed = true })
	forgetOld()
	if counting.know(1, []string{"signups"}); !changed {
		t.Error("nobody hears of the first threshold")
	}
}

func TestPartitionsShareThePoolsRoom(t *testing.T) {
	reg := registry.New()
	reg.Register("mail", registry.Func(func(context.Context, registry.Job) error { return nil }), registry.Options{})
	p := newPool(64, reg)
	first, second := newHint(), newHint()
	held := p.reserve(claimRuns, first)
	if held.runs != 64 {
		t.Fatalf("room for %d runs", held.runs)
	}
	if got := p.reserve(claimRuns, second); got.runs != 0 {
		t.Errorf("room for %d more runs", got.runs)
	}
	if len(second) != 0 {
		t.Error("who found no room is told at once, and would ask again without end")
	}
	p.add(held, nil, nil)
	if len(second) != 1 {
		t.Error("who found no room is not told when the other's claim took none")
	}
	<-second
	if got := p.reserve(claimRuns, second); got.runs != 64 {
		t.Errorf("room for %d runs", got.runs)
	}
}

func TestWhoFoundRoomForSomeTasksIsToldByOthersOnly(t *testing.T) {
	reg := registry.New()
	for _, name := range []string{"mail", "fax"} {
		reg.Register(name, registry.Func(func(context.Context, registry.Job) error { return nil }), registry.Options{Concurrency: 1})
	}
	p := newPool(64, reg)
	first, second := newHint(), newHint()
	held := p.reserve(1, first)
	held.wants = held.wants[:1]
	for _, l := range p.lines { // as if the first had asked for one task only
		if l.task.Name != held.wants[0].Task {
			l.reserved = 0
		}
	}
	some := p.reserve(claimRuns, second)
	if len(some.wants) != 1 {
		t.Fatalf("room for %v", some.wants)
	}
	if p.add(some, nil, nil); len(second) != 0 {
		t.Error("it is told by its own claim, and would ask again without end")
	}
	if p.add(held, nil, nil); len(second) != 1 {
		t.Error("it is not told when the other's claim is over")
	}
}
