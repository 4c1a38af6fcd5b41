package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// left says what Redis still holds of jobs, or "".
func (h *harness) left() string {
	ctx := h.t.Context()
	var left []string
	for _, state := range []client.State{client.Pending, client.Running, client.Retrying, client.Dead} {
		page, err := h.load.jobs.List(ctx, client.Filter{State: state}, "", 5)
		if err != nil {
			return err.Error()
		}
		for _, job := range page.Jobs {
			left = append(left, fmt.Sprintf("%s: run %s, attempt %d, since %s, of %s", state, job.RunID, job.Attempt, job.At, h.book.describe(job.ID)))
		}
	}
	keys, err := h.site.keysBut(ctx, "keyfuse:")
	if err != nil {
		return err.Error()
	}
	if len(keys) > 0 {
		left = append(left, fmt.Sprintf("%d keys, such as %q", len(keys), keys[:min(5, len(keys))]))
	}
	return strings.Join(left, "\n")
}

// describe says all that is known of an id.
func (b *book) describe(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil {
		return j.String()
	}
	if c := b.counters[id]; c != nil {
		return c.String()
	}
	return fmt.Sprintf("%q, which nobody knows", id)
}

// keysBut are all keys but those that begin so.
func (s site) keysBut(ctx context.Context, prefix string) ([]string, error) {
	var mu sync.Mutex // a cluster's masters are asked at the same time
	var keys []string
	err := s.masters(ctx, func(ctx context.Context, server *redis.Client) error {
		for cursor := uint64(0); ; {
			page, next, err := server.Scan(ctx, cursor, "*", 1000).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			keys = append(keys, slices.DeleteFunc(page, func(key string) bool { return strings.HasPrefix(key, prefix) })...)
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return keys, err
}
