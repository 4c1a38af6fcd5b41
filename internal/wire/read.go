package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Tasks are the tasks that were ever indexed, sorted.
func (s *Store) Tasks(ctx context.Context) ([]string, error) {
	tasks, err := s.rdb.SMembers(ctx, s.Of("tasks")).Result()
	slices.Sort(tasks)
	return tasks, err
}

// Holding is all that is held of one id.
type Holding struct {
	ID    string
	Class string // the class key's value; "" with HasClass false if it has none
	// HasClass: the class key is there and a string.
	HasClass bool
	Fuse     time.Time // when the fuse runs out; zero if there is none
	Immortal bool      // the fuse has no TTL
	Indexed  time.Time // due time in the index; zero if it is not there
	Runs     []Run     // in no order
	Window   *Window   // that is open; nil if there is none
}

// Due is when the pending job is due: a live fuse wins over the index, unless it
// is a window's counter.
func (h Holding) Due() time.Time {
	if !h.Fuse.IsZero() && h.Window == nil {
		return h.Fuse
	}
	return h.Indexed
}

// Get reads all that is held of some ids, in their order.
func (s *Store) Get(ctx context.Context, ids ...string) ([]Holding, error) {
	return s.read(ctx, string(Running), ids)
}

// Waiting is Get without runs under way, for many ids: to find those is to look at
// all leases for each id.
func (s *Store) Waiting(ctx context.Context, ids ...string) ([]Holding, error) {
	return s.read(ctx, "", ids)
}

func (s *Store) read(ctx context.Context, running string, ids []string) ([]Holding, error) {
	args := make([]any, 0, 1+len(ids))
	args = append(args, running)
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := s.run(ctx, s.get, args...)
	if err == nil {
		err = need(reply, len(ids))
	}
	if err != nil {
		return nil, err
	}
	holdings := make([]Holding, len(ids))
	for i, id := range ids {
		fields, _ := reply[i].([]any)
		if err := need(fields, 6); err != nil {
			return nil, err
		}
		holdings[i] = holding(id, fields)
	}
	return holdings, nil
}

func holding(id string, fields []any) Holding {
	h := Holding{ID: id}
	h.Class, h.HasClass = fields[0].(string)
	switch fuse := asInt(fields[1]); fuse {
	case -2:
	case -1:
		h.Immortal = true
	default:
		h.Fuse = msTime(fuse)
	}
	if at := asInt(fields[2]); at >= 0 {
		h.Indexed = msTime(at)
	}
	runs, _ := fields[3].([]any)
	for i := 0; i+5 < len(runs); i += 6 {
		run := readRecord(asString(runs[i+4]))
		run.Task, run.RunID, run.State = asString(runs[i]), asString(runs[i+1]), State(asString(runs[i+2]))
		run.At, run.Lease = msTime(asInt(runs[i+3])), asString(runs[i+5])
		h.Runs = append(h.Runs, run)
	}
	if record, ok := fields[4].(string); ok {
		h.Window = readWindow(record, asString(fields[5]))
	}
	return h
}

// Place is a place in a listing: behind a member of a sorted set.
type Place struct {
	Score  float64
	Member string
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Member, b.Member))
}

// Page reads at most n members of a task's sorted set that come behind a place
// (the zero Place is before all), whether its member is still there or not.
func (s *Store) Page(ctx context.Context, state State, task string, after Place, n int) ([]redis.Z, error) {
	if state == Running {
		return s.runningPage(ctx, task, after, n)
	}
	kind := string(state)
	if state == Pending {
		kind = "due"
	}
	score := strconv.FormatFloat(after.Score, 'f', -1, 64)
	reply, err := s.run(ctx, s.page, kind+":"+task, score, after.Member, n)
	if err != nil {
		return nil, err
	}
	page := make([]redis.Z, 0, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		score, err := strconv.ParseFloat(asString(reply[i+1]), 64)
		if err != nil {
			return nil, fmt.Errorf("the score of a member of %s: %w", s.OfTask(kind, task), err)
		}
		page = append(page, redis.Z{Score: score, Member: asString(reply[i])})
	}
	return page, nil
}

// runningPage is Page for leases, by when they were claimed. They are in no order and
// so few that all of them can be read: as many as runs are under way.
func (s *Store) runningPage(ctx context.Context, task string, after Place, n int) ([]redis.Z, error) {
	leases, err := s.rdb.HKeys(ctx, s.OfTask("running", task)).Result()
	if err != nil {
		return nil, err
	}
	page := make([]redis.Z, 0, len(leases))
	for _, lease := range leases {
		at := float64(claimedAt(lease).UnixMilli())
		if at > after.Score || at == after.Score && lease > after.Member {
			page = append(page, redis.Z{Score: at, Member: lease})
		}
	}
	slices.SortFunc(page, func(a, b redis.Z) int {
		return comparePlaces(Place{a.Score, a.Member.(string)}, Place{b.Score, b.Member.(string)})
	})
	return page[:min(n, len(page))], nil
}

// Records reads the records of members of a task's running, retrying or dead
// set. Runs that were settled meanwhile are left out.
func (s *Store) Records(ctx context.Context, state State, task string, members []redis.Z) ([]Run, error) {
	if len(members) == 0 {
		return nil, nil
	}
	fields, kind := make([]string, len(members)), "runs"
	for i, z := range members {
		fields[i] = z.Member.(string)
	}
	if state == Running {
		kind = "running"
	}
	records, err := s.rdb.HMGet(ctx, s.OfTask(kind, task), fields...).Result()
	if err != nil {
		return nil, err
	}
	runs := make([]Run, 0, len(records))
	for i, record := range records {
		text, ok := record.(string)
		if !ok {
			continue
		}
		run := readRecord(text)
		run.Task, run.RunID, run.State, run.At = task, RunIDOf(fields[i]), state, msTime(int64(members[i].Score))
		if state == Running {
			run.Lease = fields[i]
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// Count is how many runs or jobs a task has in each state.
type Count struct {
	Task                             string
	Pending, Running, Retrying, Dead int64
	Paused                           bool
}

// Counts counts, for the tasks that were ever indexed.
func (s *Store) Counts(ctx context.Context) ([]Count, error) {
	tasks, err := s.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	paused, err := s.rdb.SMembers(ctx, s.Of("paused")).Result()
	if err != nil {
		return nil, err
	}
	for _, task := range paused {
		if at, found := slices.BinarySearch(tasks, task); !found {
			tasks = slices.Insert(tasks, at, task)
		}
	}
	counts := make([]Count, len(tasks))
	cmds := make([][4]*redis.IntCmd, len(tasks))
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, task := range tasks {
			cmds[i] = [4]*redis.IntCmd{
				p.ZCard(ctx, s.OfTask("due", task)), p.HLen(ctx, s.OfTask("running", task)),
				p.ZCard(ctx, s.OfTask("retrying", task)), p.ZCard(ctx, s.OfTask("dead", task)),
			}
		}
		return nil
	})
	for i, task := range tasks {
		c := cmds[i]
		counts[i] = Count{task, c[0].Val(), c[1].Val(), c[2].Val(), c[3].Val(), slices.Contains(paused, task)}
	}
	return counts, err
}

// Pause keeps a task's runs from being claimed; Resume lets them be again. Both
// say whether that changed anything.
func (s *Store) Pause(ctx context.Context, task string) (bool, error) {
	n, err := s.rdb.SAdd(ctx, s.Of("paused"), task).Result()
	return n > 0, err
}

// Resume undoes Pause, and wakes the nodes.
func (s *Store) Resume(ctx context.Context, task string) (bool, error) {
	n, err := s.rdb.SRem(ctx, s.Of("paused"), task).Result()
	if err != nil {
		return false, err
	}
	// A lost wake-up costs a delay until the next look, no more.
	_ = s.rdb.Publish(ctx, s.Wake(s.db), task).Err()
	return n > 0, nil
}

// NodeInfo is a node and what it says of itself.
type NodeInfo struct {
	Node  string
	Until time.Time // end of its lease
	Info  string    // JSON
}

// Nodes are the nodes that hold a lease, in the order of their names.
func (s *Store) Nodes(ctx context.Context) ([]NodeInfo, error) {
	leases, err := s.rdb.ZRangeWithScores(ctx, s.Of("nodes"), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	info, err := s.rdb.HGetAll(ctx, s.Of("info")).Result()
	if err != nil {
		return nil, err
	}
	nodes := make([]NodeInfo, len(leases))
	for i, z := range leases {
		name := z.Member.(string)
		nodes[i] = NodeInfo{name, msTime(int64(z.Score)), info[name]}
	}
	slices.SortFunc(nodes, func(a, b NodeInfo) int { return strings.Compare(a.Node, b.Node) })
	return nodes, nil
}

// LeasesOf are a task's leases that a node holds.
func (s *Store) LeasesOf(ctx context.Context, task, node string) ([]string, error) {
	leases, err := s.rdb.HKeys(ctx, s.OfTask("running", task)).Result()
	return slices.DeleteFunc(leases, func(lease string) bool { return leaseField(lease, leaseNode) != node }), err
}
