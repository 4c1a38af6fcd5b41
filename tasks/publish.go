package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/registry"
)

// Publish publishes each run on a Redis channel, as the envelope in JSON. Who
// does not listen at that moment never hears of it, and a run that nobody
// heard is done all the same.
type Publish struct {
	// Redis is the client to publish with; any redis.Cmdable is one.
	Redis redis.PubSubCmdable
	// Channel is the channel.
	Channel string
}

type publishTask struct{ Publish }

// NewPublish returns a task that publishes a message a run. It refuses a config
// without client or channel.
func NewPublish(c Publish) (registry.Handler, error) {
	if c.Redis == nil {
		return nil, fmt.Errorf("publish task: %w", errNoRedis)
	}
	if c.Channel == "" {
		return nil, errors.New("publish task: channel is empty: name the channel to publish on")
	}
	return &publishTask{c}, nil
}

// Handle publishes the run.
func (t *publishTask) Handle(ctx context.Context, job registry.Job) error {
	doc, err := document(job)
	if err != nil {
		return err
	}
	if err := t.Redis.Publish(ctx, t.Channel, doc).Err(); err != nil {
		return fmt.Errorf("publish on %q: %w", t.Channel, because(ctx, err))
	}
	return nil
}
