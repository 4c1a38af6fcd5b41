package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/registry"
)

// Stream adds each run to a Redis stream, as an entry with the envelope's
// fields.
type Stream struct {
	// Redis is the client to write with; any redis.Cmdable is one. go-redis
	// repeats a command whose answer was lost, which adds an entry twice; a
	// client with MaxRetries -1 leaves repeating to the task's own retries.
	Redis redis.StreamCmdable
	// Key is the stream.
	Key string
	// MaxLen trims the stream to about so many entries, oldest first. Zero
	// means no trimming.
	MaxLen int64
}

type streamTask struct{ Stream }

// NewStream returns a task that adds an entry a run. It refuses a config
// without client or key, a key of Keyfuse's own, and a negative MaxLen.
func NewStream(c Stream) (registry.Handler, error) {
	if c.Redis == nil {
		return nil, fmt.Errorf("stream task: %w", errNoRedis)
	}
	if err := checkKey(c.Key); err != nil {
		return nil, fmt.Errorf("stream task: %w", err)
	}
	if c.MaxLen < 0 {
		return nil, errors.New("stream task: maxlen is negative: leave it out to keep every entry")
	}
	return &streamTask{c}, nil
}

// Handle adds the run to the stream.
func (t *streamTask) Handle(ctx context.Context, job registry.Job) error {
	var values []any
	for _, f := range envelope(job) {
		values = append(values, f.name, f.value)
	}
	entry := redis.XAddArgs{Stream: t.Key, MaxLen: t.MaxLen, Approx: t.MaxLen > 0, Values: values}
	if err := t.Redis.XAdd(ctx, &entry).Err(); err != nil {
		return fmt.Errorf("add to stream %q: %w", t.Key, because(ctx, err))
	}
	return nil
}
