package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Get returns what is held of an id: the pending job first, if there is one,
// then its runs. ErrNotFound if there is nothing.
func (c *Client) Get(ctx context.Context, id string) ([]Job, error) {
	if err := c.checkID(id); err != nil {
		return nil, err
	}
	holdings, err := c.space.Of(id).Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	if job, ok := pending(holdings[0]); ok {
		jobs = append(jobs, job)
	}
	for _, run := range holdings[0].Runs {
		jobs = append(jobs, fromRun(run))
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return jobs, nil
}

func pending(h wire.Holding) (Job, bool) {
	if !h.HasClass {
		return Job{}, false
	}
	task, payload, err := wire.ParseClass(h.Class)
	if err != nil {
		return Job{}, false
	}
	trace, payload := wire.CutTrace(payload)
	return Job{ID: h.ID, Task: task, State: Pending, Payload: payload, Trace: trace, Due: h.Due(), Window: (*Window)(h.Window)}, true
}

// Filter chooses jobs for List.
type Filter struct {
	State  State  // empty means Pending
	Task   string // empty means all tasks
	Prefix string // of the id; empty means any
}

// ErrBadCursor is returned for a cursor that List did not give, or gave for
// another filter.
var ErrBadCursor = errors.New("not a cursor of this list")

// Page is one page of a list.
type Page struct {
	Jobs []Job
	// Next is the cursor of the next page, empty behind the last one.
	Next string
}

// List reads one page of at most limit jobs: task by task in the order of their
// names, earliest first within a task. cursor is empty for the first page. A page may
// have fewer jobs than there are, or none, if it looked at some thousand others for
// them or their payloads are longer than 8 MiB together: Next says whether there may be
// more. The list is read while jobs come and go: one that is there all the while is
// listed, and one that moves meanwhile may be listed twice or not at all. Bare
// jobs are listed once a node has indexed them.
func (c *Client) List(ctx context.Context, f Filter, cursor string, limit int) (Page, error) {
	if f.State == "" {
		f.State = Pending
	}
	if limit < 1 {
		return Page{}, fmt.Errorf("%w: limit %d is below 1", ErrInvalid, limit)
	}
	at, err := parseCursor(f, cursor)
	if err != nil {
		return Page{}, err
	}
	tasks := []string{f.Task}
	if f.Task == "" {
		if tasks, err = c.space.Tasks(ctx); err != nil {
			return Page{}, err
		}
	}
	var page Page
	looked, steps, bytes := 0, 0, 0
	for _, task := range tasks {
		if task < at.Task {
			continue
		}
		place := wire.Place{}
		if task == at.Task {
			place = at.Place
		}
		for {
			jobs, last, n, err := c.step(ctx, f, task, place, fit(len(page.Jobs), bytes, limit))
			if err != nil {
				return Page{}, err
			}
			page.Jobs = append(page.Jobs, jobs...)
			for _, job := range jobs {
				bytes += len(job.Payload)
			}
			if n == 0 {
				break
			}
			looked += n
			steps++
			if place = last; len(page.Jobs) >= limit || bytes >= maxPageBytes || looked >= maxLook || steps >= maxSteps {
				page.Next = cursorAt{f, task, place}.String()
				return page, nil
			}
		}
	}
	return page, nil
}

// All reads a whole list, page by page. An error ends it.
func (c *Client) All(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for cursor := ""; ; {
			page, err := c.List(ctx, f, cursor, pageSize)
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, job := range page.Jobs {
				if !yield(job, nil) {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

const (
	pageSize = 100
	// searchSize is how many ids of the index are read at a time for some of them:
	// they come without their jobs.
	searchSize = 1000
	// maxLook bounds what one page costs: a prefix may be of none among millions.
	maxLook  = 10 * searchSize
	maxSteps = 100
	// maxPageBytes bounds the payloads of a page, which are read whole, and firstStep
	// how many jobs are read before it is known how long those of this list are.
	maxPageBytes = 8 << 20
	firstStep    = 8
)

// fit is how many more jobs may be read for a page of at most limit that has some of so
// many bytes, if the next ones are like those.
func fit(jobs, bytes, limit int) int {
	if jobs == 0 {
		return min(firstStep, limit)
	}
	return max(1, min(limit-jobs, (maxPageBytes-bytes)/(bytes/jobs+1)))
}

// step reads the next few members of one task's set: the jobs among them that
// the filter wants, at most room of them; the last place read; and how many were
// looked at, none if that was behind the last.
func (c *Client) step(ctx context.Context, f Filter, task string, after wire.Place, room int) ([]Job, wire.Place, int, error) {
	n := min(pageSize, room)
	if f.State == Pending && f.Prefix != "" {
		n = searchSize
	}
	members, err := c.space.Page(ctx, f.State, task, after, n)
	if err != nil || len(members) == 0 {
		return nil, after, 0, err
	}
	var jobs []Job
	if f.State == Pending {
		var found []wire.Entry
		found, members = wanted(members, f.Prefix, room)
		jobs, err = jobsOf(found, func(store *wire.Store, ids []redis.Z) ([]*Job, error) { return pendingJobs(ctx, store, ids) })
	} else {
		jobs, err = jobsOf(members, func(store *wire.Store, runs []redis.Z) ([]*Job, error) { return runJobs(ctx, store, f, task, runs) })
	}
	return jobs, members[len(members)-1].Place(), len(members), err
}

// wanted are the first ids with a prefix, at most room, and the members that
// were looked at for them.
func wanted(members []wire.Entry, prefix string, room int) (found, seen []wire.Entry) {
	for i, entry := range members {
		if strings.HasPrefix(entry.Member.(string), prefix) {
			if found = append(found, entry); len(found) == room {
				return found, members[:i+1]
			}
		}
	}
	return found, members
}

// jobsOf reads the jobs of some members where each of them is, and keeps their
// order. read gives nil for what is gone meanwhile, or is not wanted.
func jobsOf(entries []wire.Entry, read func(*wire.Store, []redis.Z) ([]*Job, error)) ([]Job, error) {
	found := make([]*Job, len(entries))
	_, err := wire.Group(entries, func(entry wire.Entry) *wire.Store { return entry.Store }, pageSize,
		func(store *wire.Store, entries []wire.Entry, at []int) (int, error) {
			members := make([]redis.Z, len(entries))
			for i, entry := range entries {
				members[i] = entry.Z
			}
			jobs, err := read(store, members)
			for i, job := range jobs {
				found[at[i]] = job
			}
			return 0, err
		})
	jobs := make([]Job, 0, len(found))
	for _, job := range found {
		if job != nil {
			jobs = append(jobs, *job)
		}
	}
	return jobs, err
}

func pendingJobs(ctx context.Context, store *wire.Store, members []redis.Z) ([]*Job, error) {
	holdings, err := store.Waiting(ctx, names(members)...)
	jobs := make([]*Job, len(holdings))
	for i, h := range holdings {
		if job, ok := pending(h); ok {
			jobs[i] = &job
		}
	}
	return jobs, err
}

func runJobs(ctx context.Context, store *wire.Store, f Filter, task string, members []redis.Z) ([]*Job, error) {
	runs, err := store.Records(ctx, f.State, task, members)
	jobs := make([]*Job, len(members))
	for i, z := range members {
		if len(runs) == 0 || runs[0].RunID != wire.RunIDOf(z.Member.(string)) {
			continue // it was settled meanwhile
		}
		if strings.HasPrefix(runs[0].ID, f.Prefix) {
			job := fromRun(runs[0])
			jobs[i] = &job
		}
		runs = runs[1:]
	}
	return jobs, err
}

func names(members []redis.Z) []string {
	names := make([]string, len(members))
	for i, z := range members {
		names[i] = z.Member.(string)
	}
	return names
}

// Stats is what the whole holds.
type Stats struct {
	Tasks []TaskStats // in the order of their names
	Nodes []Node
}

// TaskStats counts a task's jobs and runs.
type TaskStats = wire.Count

// Node is a daemon that holds a lease, and so may run jobs.
type Node struct {
	Name     string
	Until    time.Time // when its lease ends unless it is renewed
	Host     string
	PID      int
	Version  string
	Started  time.Time
	Tasks    []string // that it serves
	Degraded string   // why it does not hear events; empty if it does
}

// Stats counts. It costs a few commands a task, whatever their jobs.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	tasks, err := c.space.Counts(ctx)
	if err != nil {
		return Stats{}, err
	}
	infos, err := c.space.Nodes(ctx)
	if err != nil {
		return Stats{}, err
	}
	stats := Stats{Tasks: tasks}
	for _, info := range infos {
		var node Node
		// A newer release may say what this one can't read: its name is enough.
		_ = json.Unmarshal([]byte(info.Info), &node)
		node.Name, node.Until = info.Node, info.Until
		stats.Nodes = append(stats.Nodes, node)
	}
	return stats, nil
}

// Horizon counts what a task has before it, by how soon that is due.
type Horizon = wire.Horizon

// Horizons counts, for each task that has had jobs, what is overdue and how many are due
// within each of some bounds, by Redis's clock, which it gives too. It costs a few
// commands a task and one for each bound, whatever their jobs.
func (c *Client) Horizons(ctx context.Context, bounds ...time.Duration) ([]Horizon, time.Time, error) {
	now, err := c.space.All()[0].Redis().Time(ctx).Result()
	if err != nil {
		return nil, now, err
	}
	all, err := c.space.Horizons(ctx, now, bounds)
	return all, now, err
}

// cursorAt is where a list goes on, for the filter that it belongs to.
type cursorAt struct {
	Filter Filter     `json:"f"`
	Task   string     `json:"t"`
	Place  wire.Place `json:"p"`
}

// A cursor holds bytes that may be no UTF-8, which JSON keeps only as base64.
type cursorJSON struct {
	State, Task, Prefix, At, Member []byte
	Score                           float64
}

func (at cursorAt) String() string {
	text, err := json.Marshal(cursorJSON{
		[]byte(at.Filter.State), []byte(at.Filter.Task), []byte(at.Filter.Prefix), []byte(at.Task), []byte(at.Place.Member), at.Place.Score,
	})
	if err != nil {
		return "" // a score is never NaN
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(f Filter, cursor string) (cursorAt, error) {
	if cursor == "" {
		return cursorAt{Filter: f}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return cursorAt{}, ErrBadCursor
	}
	var c cursorJSON
	if json.Unmarshal(text, &c) != nil {
		return cursorAt{}, ErrBadCursor
	}
	at := cursorAt{Filter{State(c.State), string(c.Task), string(c.Prefix)}, string(c.At), wire.Place{Score: c.Score, Member: string(c.Member)}}
	if at.Filter != f || at.Place.Member == "" {
		return cursorAt{}, ErrBadCursor
	}
	return at, nil
}
