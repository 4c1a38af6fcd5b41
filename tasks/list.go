package tasks

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/registry"
)

// List appends each run to a Redis list, as the envelope in JSON: a queue that
// workers in any language take from with BLPOP or BLMOVE.
type List struct {
	// Redis is the client to write with; any redis.Cmdable is one. What Stream
	// says of repeated commands holds here too.
	Redis redis.ListCmdable
	// Key is the list. New items go to its right end.
	Key string
}

type listTask struct{ List }

// NewList returns a task that appends an item a run. It refuses a config
// without client or key, and a key of Keyfuse's own.
func NewList(c List) (registry.Handler, error) {
	if c.Redis == nil {
		return nil, fmt.Errorf("list task: %w", errNoRedis)
	}
	if err := checkKey(c.Key); err != nil {
		return nil, fmt.Errorf("list task: %w", err)
	}
	return &listTask{c}, nil
}

// Handle appends the run to the list.
func (t *listTask) Handle(ctx context.Context, job registry.Job) error {
	doc, err := document(job)
	if err != nil {
		return err
	}
	if err := t.Redis.RPush(ctx, t.Key, doc).Err(); err != nil {
		return fmt.Errorf("append to list %q: %w", t.Key, because(ctx, err))
	}
	return nil
}
