package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// exam is one run of the doctor.
type exam struct {
	rdb     redis.UniversalClient // to all servers
	opts    Options
	space   *wire.Space
	servers []*server // that answer: the only one, or a cluster's masters by their partitions

	tasks   []wire.Count
	daemons []*daemon // by their names
	err     error     // why these, or the thresholds, are not known

	thresholds []wire.Threshold // that can be read
	unreadable []string         // the others
	unlike     []string         // patterns that are not the same in all partitions
}

// daemon is one that is alive: it holds the lease of a partition at least.
type daemon struct {
	client.Node
	leases map[*wire.Store]bool
}

// reach asks all servers who they are, and reads what later checks go by.
func (e *exam) reach(ctx context.Context) Check {
	space, err := wire.NewSpace(e.rdb)
	if err != nil {
		return unreachable(err, correctIt)
	}
	e.space = space
	masters, err := e.masters(ctx)
	if err != nil {
		return unreachable(err, correctIt)
	}
	c := merged(masters, onEach(masters, func(s *server) Check { return s.reach(ctx) }))
	e.servers = slices.DeleteFunc(masters, func(s *server) bool { return s.now.IsZero() })
	if len(e.servers) > 0 {
		e.read(ctx)
	}
	return c
}

// masters are the servers that hold keys, and which partitions each has.
func (e *exam) masters(ctx context.Context) ([]*server, error) {
	cluster, ok := e.rdb.(*redis.ClusterClient)
	if !ok {
		return []*server{{exam: e, rdb: e.rdb, stores: e.space.All(), user: anyUser}}, nil
	}
	var mu sync.Mutex
	masters := make(map[string]*server)
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addr := c.Options().Addr
		masters[addr] = &server{exam: e, rdb: c, addr: addr, user: anyUser}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, store := range e.space.All() {
		holder, err := store.Server(ctx)
		if err != nil {
			return nil, err
		}
		if c, ok := holder.(*redis.Client); ok && masters[c.Options().Addr] != nil {
			s := masters[c.Options().Addr]
			s.stores = append(s.stores, store)
		}
	}
	return slices.SortedFunc(maps.Values(masters), func(a, b *server) int {
		return cmp.Or(cmp.Compare(a.first(), b.first()), strings.Compare(a.addr, b.addr))
	}), nil
}

// first is the number of a server's first partition.
func (s *server) first() int {
	if len(s.stores) == 0 {
		return wire.Partitions
	}
	return s.stores[0].Partition()
}

// holder is the server that holds a partition, nil if it does not answer.
func (e *exam) holder(store *wire.Store) *server {
	i := slices.IndexFunc(e.servers, func(s *server) bool { return slices.Contains(s.stores, store) })
	if i < 0 {
		return nil
	}
	return e.servers[i]
}

// now is the time when the exam began, by the clock that a partition goes by.
func (e *exam) now(store *wire.Store) time.Time {
	return cmp.Or(e.holder(store), e.servers[0]).now
}

func (e *exam) read(ctx context.Context) {
	var err error
	e.tasks, err = e.space.Counts(ctx)
	e.err = cmp.Or(err, e.readDaemons(ctx), e.readThresholds(ctx))
}

// readDaemons asks each partition who holds a lease of it.
func (e *exam) readDaemons(ctx context.Context) error {
	stores := e.space.All()
	lists, errs := answers(stores, func(store *wire.Store) ([]wire.NodeInfo, error) { return store.Nodes(ctx) })
	found := make(map[string]*daemon)
	for i, store := range stores {
		for _, n := range lists[i] {
			if n.Until.After(e.now(store)) { // the others ended without a word
				found[wire.EngineOf(n.Node)] = found[wire.EngineOf(n.Node)].with(store, n)
			}
		}
	}
	e.daemons = slices.SortedFunc(maps.Values(found), func(a, b *daemon) int { return strings.Compare(a.Name, b.Name) })
	return errors.Join(errs...)
}

// with adds a lease to what is known of a daemon, nil if that is nothing. What it
// said of itself last is told.
func (d *daemon) with(store *wire.Store, n wire.NodeInfo) *daemon {
	if d == nil {
		d = &daemon{leases: make(map[*wire.Store]bool)}
	}
	d.leases[store] = true
	if n.Until.After(d.Until) {
		d.Node = client.Node{}
		// A newer release may say what this one can't read: its name is enough.
		_ = json.Unmarshal([]byte(n.Info), &d.Node)
		d.Name, d.Until = wire.EngineOf(n.Node), n.Until
	}
	return d
}

// onEach looks at several things at the same time, and gives what it saw in their
// order.
func onEach[T, R any](things []T, look func(T) R) []R {
	seen := make([]R, len(things))
	var looking sync.WaitGroup
	for i, thing := range things {
		looking.Go(func() { seen[i] = look(thing) })
	}
	looking.Wait()
	return seen
}

// answers is onEach for what may fail.
func answers[T, R any](things []T, ask func(T) (R, error)) (given []R, errs []error) {
	type answer struct {
		given R
		err   error
	}
	for _, a := range onEach(things, func(thing T) answer { given, err := ask(thing); return answer{given, err} }) {
		given, errs = append(given, a.given), append(errs, a.err)
	}
	return given, errs
}
