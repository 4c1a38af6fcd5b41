package client

import (
	"context"
	"slices"

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
	return c.eachDead(ctx, f, (*wire.Store).Requeue)
}

// DeleteDead removes dead letters for good, and returns how many there were.
func (c *Client) DeleteDead(ctx context.Context, f DeadFilter) (int, error) {
	return c.eachDead(ctx, f, (*wire.Store).DeleteDead)
}

type deadChange func(s *wire.Store, ctx context.Context, task string, runIDs []string) (int, error)

func (c *Client) eachDead(ctx context.Context, f DeadFilter, change deadChange) (int, error) {
	tasks := []string{f.Task}
	if f.Task == "" {
		var err error
		if tasks, err = c.space.Tasks(ctx); err != nil {
			return 0, err
		}
	}
	total := 0
	for _, store := range c.space.All() {
		n, err := deadIn(ctx, store, tasks, f.IDs, change)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func deadIn(ctx context.Context, store *wire.Store, tasks, ids []string, change deadChange) (int, error) {
	if len(ids) > 0 {
		return namedDead(ctx, store, tasks, ids, change)
	}
	total := 0
	for _, task := range tasks {
		// Each round takes the first ones away, so the next ones come first.
		// One that dies again meanwhile goes to the end: stop at the count.
		left, err := store.Redis().ZCard(ctx, store.OfTask("dead", task)).Result()
		if err != nil {
			return total, err
		}
		for left > 0 {
			page, err := store.Page(ctx, Dead, task, wire.Place{}, int(min(left, pageSize)))
			if err != nil {
				return total, err
			}
			if len(page) == 0 { // others took them away
				break
			}
			n, err := change(store, ctx, task, names(page))
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
func namedDead(ctx context.Context, store *wire.Store, tasks, all []string, change deadChange) (int, error) {
	total := 0
	for ids := range slices.Chunk(all, pageSize) {
		byTask, err := runsOf(ctx, store, ids, tasks)
		if err != nil {
			return total, err
		}
		for _, task := range tasks {
			for chunk := range slices.Chunk(byTask[task], pageSize) {
				n, err := change(store, ctx, task, chunk)
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
func runsOf(ctx context.Context, store *wire.Store, ids, tasks []string) (map[string][]string, error) {
	holdings, err := store.Waiting(ctx, ids...)
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
