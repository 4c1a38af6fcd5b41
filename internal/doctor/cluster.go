package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// allSlots is how many slots a cluster has.
const allSlots = "16384"

// state looks at the cluster as one of its masters sees it.
func (s *server) state(ctx context.Context) Check {
	byHand := "ACL SETUSER " + s.user + " +cluster|info +cluster|nodes +cluster|keyslot, or see redis-cli --cluster check " + s.addr
	text, err := s.rdb.ClusterInfo(ctx).Result()
	if err != nil {
		return blind("the cluster's state", err, byHand)
	}
	moving, err := s.moving(ctx)
	if err != nil {
		return blind("which slots are being moved", err, byHand)
	}
	const check = "redis-cli --cluster check HOST:PORT says what is wrong"
	switch info := fields(text); {
	case info["cluster_state"] != "ok":
		return fail(check+"\nstart the masters that are away, or promote their replicas: CLUSTER FAILOVER TAKEOVER there",
			"cluster_state is %s, %s of %s slots are served: no job runs", info["cluster_state"], info["cluster_slots_ok"], allSlots)
	case info["cluster_slots_ok"] != allSlots:
		return fail(check, "only %s of %s slots are served: the jobs of the others wait", info["cluster_slots_ok"], allSlots)
	case len(moving) > 0:
		return warn("let that end; if nobody is moving them any more: redis-cli --cluster fix "+s.addr,
			"partitions are being moved, and their jobs wait meanwhile: %s", some(moving))
	}
	return ok("cluster_state is ok, all %s slots are served", allSlots)
}

// moving are the partitions whose slot a master is giving away, and to whom.
func (s *server) moving(ctx context.Context) ([]string, error) {
	text, err := s.rdb.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	slots := make([]*redis.IntCmd, len(s.stores))
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, store := range s.stores {
			slots[i] = p.ClusterKeySlot(ctx, store.Root())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	leaving := leavingSlots(text)
	var moving []string
	for i, store := range s.stores {
		if to, ok := leaving[slots[i].Val()]; ok {
			moving = append(moving, fmt.Sprintf("%s to %s", tagOf(store), to))
		}
	}
	return moving, nil
}

// leavingSlots reads from CLUSTER NODES which slots the node that answers is giving
// away ("[7->-ID]" in its own line), and to which address.
func leavingSlots(nodes string) map[int64]string {
	addrs, leaving := make(map[string]string), make(map[int64]string)
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		addrs[f[0]], _, _ = strings.Cut(f[1], "@")
		for _, field := range f[2:] {
			slot, id, ok := strings.Cut(strings.Trim(field, "[]"), "->-")
			if n, err := strconv.ParseInt(slot, 10, 64); ok && err == nil {
				leaving[n] = id
			}
		}
	}
	for slot, id := range leaving {
		if addr, ok := addrs[id]; ok {
			leaving[slot] = addr
		}
	}
	return leaving
}

// tagOf is how people know a partition: by the tag that its keys carry.
func tagOf(store *wire.Store) string { return store.Fuse("") }

func tagsOf(stores []*wire.Store) string {
	tags := make([]string, len(stores))
	for i, store := range stores {
		tags[i] = tagOf(store)
	}
	return some(tags)
}

// partitions looks how they are spread over masters, and who serves them.
func (e *exam) partitions(context.Context) Check {
	if e.err != nil {
		return both(e.spread(), blind("who serves the partitions", e.err, "mend what the checks above say"))
	}
	return both(e.spread(), e.coverage())
}

// spread looks whether the masters share the partitions, and so the work.
func (e *exam) spread() Check {
	var shares, crowded, idle []string
	for _, s := range e.servers {
		share := fmt.Sprintf("%s %d", s.addr, len(s.stores))
		shares = append(shares, share)
		switch n := len(s.stores); {
		case n == 0:
			idle = append(idle, s.addr)
		case n > 1 && n*len(e.servers) >= 2*wire.Partitions:
			crowded = append(crowded, share)
		}
	}
	if len(e.servers) > wire.Partitions {
		idle = nil // there are not enough for all
	}
	const fix = "share the slots out in even, unbroken ranges: a partition is in the middle of each sixteenth of them; CLUSTER KEYSLOT keyfuse:{TAG}: says where"
	var found []Check
	if orphans := e.lacking(func(store *wire.Store) bool { return e.holder(store) == nil }); len(orphans) > 0 {
		found = append(found, fail("see the checks of redis and cluster", "no master answers for %s", tagsOf(orphans)))
	}
	if len(idle) > 0 {
		found = append(found, warn(fix, "masters that have slots, but none of the %d partitions, and so no part in the work: %s", wire.Partitions, some(idle)))
	}
	if len(crowded) > 0 {
		found = append(found, warn(fix, "masters that hold twice their share of the %d partitions or more: %s", wire.Partitions, some(crowded)))
	}
	if len(found) > 0 {
		return both(found...)
	}
	return ok("%d on %d masters: %s", wire.Partitions, len(e.servers), strings.Join(shares, ", "))
}

// coverage looks whether each partition is served by the daemons that are alive.
func (e *exam) coverage() Check {
	if len(e.daemons) == 0 {
		return Check{Status: OK} // the check of nodes tells
	}
	var found []Check
	nobody := e.lacking(func(store *wire.Store) bool {
		return !slices.ContainsFunc(e.daemons, func(d *daemon) bool { return d.leases[store] })
	})
	if len(nobody) > 0 {
		found = append(found, fail(e.reachFix(nobody), "no daemon has a lease of %s: their jobs wait", tagsOf(nobody)))
	}
	for _, d := range e.daemons {
		lacks := e.lacking(func(store *wire.Store) bool { return !d.leases[store] && !slices.Contains(nobody, store) })
		if len(lacks) > 0 {
			found = append(found, warn(e.reachFix(lacks), "daemon %s has no lease of %s", d.Name, tagsOf(lacks)))
		}
	}
	if len(found) > 0 {
		return both(found...)
	}
	return ok("all daemons serve all of them")
}

func (e *exam) lacking(lacks func(*wire.Store) bool) []*wire.Store {
	return slices.DeleteFunc(slices.Clone(e.space.All()), func(store *wire.Store) bool { return !lacks(store) })
}

func (e *exam) reachFix(stores []*wire.Store) string {
	var addrs []string
	for _, store := range stores {
		if s := e.holder(store); s != nil {
			addrs = append(addrs, s.addr)
		}
	}
	return "unless they are being moved (see cluster), see that the daemons reach " + some(unique(addrs)) + ", and their logs"
}
