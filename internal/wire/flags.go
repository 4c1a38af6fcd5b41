package wire

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// NoteFlag notes that Keyfuse itself has set a notification flag, on the server
// process that runs now: a restart takes it back.
func (s *Store) NoteFlag(ctx context.Context, flag string) error {
	process, err := s.process(ctx)
	if err != nil || process == "" { // a managed service may not tell: then it is left as it is
		return err
	}
	return s.rdb.Set(ctx, s.Of("flags"), flag+" "+process, 0).Err()
}

// TakeFlagNote says whether Keyfuse itself has set a flag on the server process
// that runs now, and forgets it.
func (s *Store) TakeFlagNote(ctx context.Context, flag string) (bool, error) {
	process, err := s.process(ctx)
	if err != nil || process == "" {
		return false, err
	}
	key := s.Of("flags")
	noted, err := s.rdb.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) || err == nil && noted != flag+" "+process {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.rdb.Del(ctx, key).Err()
}

// process is what Redis calls its own process, empty if it does not say.
func (s *Store) process(ctx context.Context) (string, error) {
	server, err := s.Server(ctx)
	if err != nil {
		return "", err
	}
	info, err := server.Info(ctx, "server").Result()
	if _, refused := errors.AsType[redis.Error](err); refused {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id, nil
		}
	}
	return "", nil
}
