package client

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// DeadFilter chooses dead letters. Its zero value chooses all.
type DeadFilter struct {
	IDs  []string // job ids or run ids; none means all
	Task string   // empty means all tasks
}

// RequeueDead gives dead letters all their attempts again, due now, and returns
// how many there were. A dead letter keeps its run id.
func (c *Client) RequeueDead(ctx context.Context, f DeadFilter) (int, error) {
	return c.eachDead(ctx, f, c.store.Requeue)
}

// DeleteDead removes dead letters for good, and returns how many there were.
func (c *Client) DeleteDead(ctx context.Context, f DeadFilter) (int, error) {
	return c.eachDead(ctx, f, c.store.DeleteDead)
}

type deadChange func(ctx context.Context, task string, runIDs []string) (int, error)

func (c *Client) eachDead(ctx context.Context, f DeadFilter, change deadChange) (int, error) {
	if len(f.IDs) > 0 {
		return c.namedDead(ctx, f, change)
	}
	tasks := []string{f.Task}
	if f.Task == "" {
		var err error
		if tasks, err = c.store.Tasks(ctx); err != nil {
			return 0, err
		}
	}
	total := 0
	for _, task := range tasks {
		// Each round takes the first ones away, so the next ones come first.
		// One that dies again meanwhile goes to the end: stop at the count.
		left, err := c.store.Redis().ZCard(ctx, c.store.OfTask("dead", task)).Result()
		if err != nil {
			return total, err
		}
		for left > 0 {
			page, err := c.store.Page(ctx, Dead, task, wire.Place{}, int(min(left, pageSize)))
			if err != nil {
				return total, err
			}
			if len(page) == 0 { // others took them away
				break
			}
			n, err := change(ctx, task, members(page))
			if err != nil {
				return total, err
			}
			total += n
			left -= int64(len(page))
		}
	}
	return total, nil
}

// namedDead changes the dead letters of named jobs or runs, a few at a time.
func (c *Client) namedDead(ctx context.Context, f DeadFilter, change deadChange) (int, error) {
	tasks, err := c.store.Tasks(ctx)
	if err != nil {
		return 0, err
	}
	total := 0
	for ids := range slices.Chunk(f.IDs, pageSize) {
		byTask, err := c.runsOf(ctx, ids, tasks)
		if err != nil {
			return total, err
		}
		for task, runIDs := range byTask {
			if f.Task != "" && task != f.Task {
				continue
			}
			for chunk := range slices.Chunk(runIDs, pageSize) {
				n, err := change(ctx, task, chunk)
				if err != nil {
					return total, err
				}
				total += n
			}
		}
	}
	return total, nil
}

// runsOf are the runs, by task, that some ids may stand for.
func (c *Client) runsOf(ctx context.Context, ids, tasks []string) (map[string][]string, error) {
	holdings, err := c.store.Get(ctx, ids...)
	if err != nil {
		return nil, err
	}
	byTask := make(map[string][]string)
	for i, h := range holdings {
		for _, run := range h.Runs {
			byTask[run.Task] = append(byTask[run.Task], run.RunID)
		}
		if len(h.Runs) == 0 { // then it may name a run, of any task
			for _, task := range tasks {
				byTask[task] = append(byTask[task], ids[i])
			}
		}
	}
	return byTask, nil
}

// runs reads the runs of a page, as far as the filter wants them.
func (c *Client) runs(ctx context.Context, f Filter, task string, page []redis.Z) ([]Job, error) {
	found, err := c.store.Records(ctx, f.State, task, page)
	if err != nil {
		return nil, err
	}
	jobs := make([]Job, 0, len(found))
	for _, run := range found {
		if len(run.ID) >= len(f.Prefix) && run.ID[:len(f.Prefix)] == f.Prefix {
			jobs = append(jobs, fromRun(run))
		}
	}
	return jobs, nil
}

func members(page []redis.Z) []string {
	names := make([]string, len(page))
	for i, z := range page {
		names[i] = z.Member.(string)
	}
	return names
}
