package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// Handle registers a task whose payload is one JSON document that decodes into
// a T. An empty payload is T's zero value. A payload that does not decode will
// not get better: the run goes to the dead letters without fn being called.
// It panics where Register does.
func Handle[T any](r *Registry, name string, fn func(ctx context.Context, job Job, args T) error, opts Options) {
	if fn == nil {
		panic(fmt.Sprintf("registry: task %q has a nil handler", name))
	}
	r.Register(name, Func(func(ctx context.Context, job Job) error {
		var args T
		if len(bytes.TrimSpace(job.Payload)) > 0 {
			if err := json.Unmarshal(job.Payload, &args); err != nil {
				return Dead(fmt.Errorf("payload is no JSON for task %s: %w", job.Task, err))
			}
		}
		return fn(ctx, job, args)
	}), opts)
}
