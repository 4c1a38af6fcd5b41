package wire

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// each does something in all partitions at the same time, and gives what came of it
// in their order.
func each[T any](ctx context.Context, s *Space, do func(*Store) (T, error)) ([]T, error) {
	results, errs := make([]T, len(s.stores)), make([]error, len(s.stores))
	var doing sync.WaitGroup
	for i, store := range s.stores {
		doing.Go(func() { results[i], errs[i] = do(store) })
	}
	doing.Wait()
	for i, err := range errs {
		_ = s.stores[i].lookAgain(ctx, err) // it is err
	}
	// What befalls a server befalls all of its partitions: it is said once.
	return results, errors.Join(slices.CompactFunc(errs, func(a, b error) bool {
		return a != nil && b != nil && a.Error() == b.Error()
	})...)
}

// AnyOf changes something in all partitions, and says whether that changed any.
func (s *Space) AnyOf(ctx context.Context, change func(*Store) (bool, error)) (bool, error) {
	changed, err := each(ctx, s, change)
	return slices.Contains(changed, true), err
}

// Group makes calls about some values, at most so many a call, each about those of
// one partition; those of different partitions at the same time. at are the places
// of a call's values among all. A call gives how many of its values are done, which
// are all unless there is an error. Group gives the first place that one befell.
func Group[T any](all []T, of func(T) *Store, most int, call func(s *Store, values []T, at []int) (int, error)) (int, error) {
	values, places := make(map[*Store][]T, 1), make(map[*Store][]int, 1)
	for i, v := range all {
		store := of(v)
		values[store], places[store] = append(values[store], v), append(places[store], i)
	}
	var calling sync.WaitGroup
	var mu sync.Mutex
	failed, failure := len(all), error(nil)
	for store, at := range places {
		calling.Go(func() {
			for from := 0; from < len(at); from += most {
				upto := min(from+most, len(at))
				done, err := call(store, values[store][from:upto], at[from:upto])
				if err == nil {
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				if first := at[from+done]; first < failed {
					failed, failure = first, err
				}
				return
			}
		})
	}
	calling.Wait()
	return failed, failure
}

// Tasks are the tasks that were ever indexed, sorted.
func (s *Space) Tasks(ctx context.Context) ([]string, error) {
	lists, err := each(ctx, s, func(s *Store) ([]string, error) { return s.Tasks(ctx) })
	tasks := slices.Concat(lists...)
	slices.Sort(tasks)
	return slices.Compact(tasks), err
}

// Counts counts, for the tasks that were ever indexed. A task is paused if it is so
// in any partition.
func (s *Space) Counts(ctx context.Context) ([]Count, error) {
	lists, err := each(ctx, s, func(s *Store) ([]Count, error) { return s.Counts(ctx) })
	if err != nil {
		return nil, err
	}
	sums := make(map[string]Count)
	for _, c := range slices.Concat(lists...) {
		sum := sums[c.Task]
		sums[c.Task] = Count{
			c.Task, sum.Pending + c.Pending, sum.Running + c.Running, sum.Retrying + c.Retrying, sum.Dead + c.Dead,
			sum.Paused || c.Paused,
		}
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b Count) int { return strings.Compare(a.Task, b.Task) }), nil
}

// Nodes are the nodes that hold a lease, in the order of their names. One that holds
// leases of several partitions comes once, with the one that ends last.
func (s *Space) Nodes(ctx context.Context) ([]NodeInfo, error) {
	lists, err := each(ctx, s, func(s *Store) ([]NodeInfo, error) { return s.Nodes(ctx) })
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]NodeInfo)
	for _, n := range slices.Concat(lists...) {
		n.Node = EngineOf(n.Node)
		if known, ok := nodes[n.Node]; !ok || n.Until.After(known.Until) {
			nodes[n.Node] = n
		}
	}
	return slices.SortedFunc(maps.Values(nodes), func(a, b NodeInfo) int { return strings.Compare(a.Node, b.Node) }), nil
}

// Entry is a member of a partition's sorted set.
type Entry struct {
	redis.Z
	Store *Store
}

// Place is where a listing goes on behind it.
func (e Entry) Place() Place { return Place{e.Score, e.Member.(string)} }

// Page is Store.Page over all partitions: the first n of all.
func (s *Space) Page(ctx context.Context, state State, task string, after Place, n int) ([]Entry, error) {
	lists, err := each(ctx, s, func(s *Store) ([]Entry, error) {
		page, err := s.Page(ctx, state, task, after, n)
		entries := make([]Entry, len(page))
		for i, z := range page {
			entries[i] = Entry{z, s}
		}
		return entries, err
	})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Entry) int { return comparePlaces(a.Place(), b.Place()) })
	return all[:min(n, len(all))], nil
}

// Define is Store.Define. A pattern is defined in all partitions, for ids of any may
// match it. One that is in some only, after an error, is mended by the same call.
func (s *Space) Define(ctx context.Context, t Threshold) (outcome Defined, other string, err error) {
	if !IsPattern(t.ID) {
		return s.Of(t.ID).Define(ctx, t)
	}
	for i, store := range s.stores {
		did, in, err := store.Define(ctx, t)
		if err != nil || did >= RefusedEqual {
			return did, in, err
		}
		if i == 0 || outcome == DefinedSame {
			outcome = did
		}
	}
	return outcome, "", nil
}

// Undefine is Store.Undefine.
func (s *Space) Undefine(ctx context.Context, id string) (bool, error) {
	if !IsPattern(id) {
		return s.Of(id).Undefine(ctx, id)
	}
	return s.AnyOf(ctx, func(store *Store) (bool, error) { return store.Undefine(ctx, id) })
}

// Thresholds are all definitions, as Store.Thresholds gives them.
func (s *Space) Thresholds(ctx context.Context) ([]Threshold, error) {
	lists, err := each(ctx, s, func(s *Store) ([]Threshold, error) { return s.Thresholds(ctx) })
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Threshold) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b Threshold) bool { return a.ID == b.ID }), err
}

// Activities are what happens under some definitions, in their order.
func (s *Space) Activities(ctx context.Context, ids []string) ([]Activity, error) {
	lists, err := each(ctx, s, func(s *Store) ([]Activity, error) { return s.Activities(ctx, ids) })
	if err != nil {
		return nil, err
	}
	all := make([]Activity, len(ids))
	for _, list := range lists {
		for i, a := range list {
			all[i].Open += a.Open
			all[i].Fired = append(all[i].Fired, a.Fired...)
		}
	}
	for i := range all {
		slices.SortStableFunc(all[i].Fired, func(a, b Fired) int { return b.At.Compare(a.At) })
		all[i].Fired = all[i].Fired[:min(len(all[i].Fired), lastFirings)]
	}
	return all, nil
}
