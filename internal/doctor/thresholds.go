package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// readThresholds reads the definitions, for the checks that go by them.
func (e *exam) readThresholds(ctx context.Context) error {
	stores := e.space.All()
	lists, errs := answers(stores, func(store *wire.Store) ([]wire.Threshold, error) { return store.Thresholds(ctx) })
	found := make(map[string][]wire.Threshold)
	for i, list := range lists {
		if errors.Is(errs[i], wire.ErrBadDefinition) {
			e.unreadable = append(e.unreadable, strings.Split(errs[i].Error(), "\n")...)
			errs[i] = nil
		}
		for _, t := range list {
			found[t.ID] = append(found[t.ID], t)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		alike := found[id]
		e.thresholds = append(e.thresholds, alike[0])
		other := func(t wire.Threshold) bool { return !reflect.DeepEqual(t, alike[0]) }
		if wire.IsPattern(id) && (len(alike) < len(stores) || slices.ContainsFunc(alike, other)) {
			e.unlike = append(e.unlike, fmt.Sprintf("%q", id))
		}
	}
	return errors.Join(errs...)
}

// counting says whether counters of a server are to be heard of.
func (s *server) counting() bool {
	return slices.ContainsFunc(s.exam.thresholds, func(t wire.Threshold) bool {
		return wire.IsPattern(t.ID) || slices.Contains(s.stores, s.exam.space.Of(t.ID))
	})
}

// definitions finds thresholds that can't be read, that are in some partitions
// only, or whose task nobody serves.
func (e *exam) definitions(context.Context) Check {
	if e.err != nil {
		return blind("the thresholds", e.err, "mend what the checks above say")
	}
	var unserved []string
	for _, t := range e.thresholds {
		if !e.served(t.Task) {
			unserved = append(unserved, fmt.Sprintf("%s (for %q)", t.Task, t.ID))
		}
	}
	switch {
	case len(e.unreadable) > 0:
		return fail("keyfuse threshold remove ID, and define it again", "hits of these fail: %s", some(unique(e.unreadable)))
	case len(e.unlike) > 0:
		return fail("define it again, which mends that: keyfuse threshold TASK --id PATTERN --count N --within D",
			"patterns that are not the same in all partitions, so that hits of some ids fail or count otherwise: %s", some(e.unlike))
	case len(unserved) > 0:
		return warn("start a daemon that serves them, or define the threshold again with the right name: keyfuse threshold",
			"no live node serves %s: what fires waits", some(unserved))
	}
	return ok("%d defined", len(e.thresholds))
}
