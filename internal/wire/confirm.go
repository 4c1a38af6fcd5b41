package wire

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Confirm asks how many replicas have a write, which a failover then does not
// lose if it promotes one of them. Zero Replicas: it is not asked.
type Confirm struct {
	Replicas int
	Timeout  time.Duration // how long to wait for them at most
}

// runConfirmed is run, and then waits for replicas; it gives how many of them have
// whatever the script wrote or found. Both go over one connection in one pipeline:
// so WAIT can't be answered by another server than the one that ran the script.
func (s *Store) runConfirmed(ctx context.Context, c Confirm, script *redis.Script, args ...any) ([]any, int, error) {
	if c.Replicas == 0 {
		reply, err := s.run(ctx, script, args...)
		return reply, 0, err
	}
	for until := time.Now().Add(movingPatience); ; {
		reply, confirmed, err := s.pipeConfirmed(ctx, c, script, args)
		switch {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			if err = s.loadThere(ctx, script); err != nil {
				return nil, 0, err
			}
			continue
		case isElsewhere(err):
			s.refresh(ctx)
		case !moving(err):
			return reply, confirmed, s.lookAgain(ctx, err)
		}
		if err := pauseMoving(ctx, until); err != nil {
			return nil, 0, err
		}
	}
}

// isElsewhere says whether a server answered that the partition is another's now.
// Only the cluster's client follows that by itself.
func isElsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

func (s *Store) loadThere(ctx context.Context, script *redis.Script) error {
	server, err := s.Server(ctx)
	if err != nil {
		return err
	}
	return script.Load(ctx, server).Err()
}

func (s *Store) pipeConfirmed(ctx context.Context, c Confirm, script *redis.Script, args []any) ([]any, int, error) {
	server, err := s.Server(ctx)
	if err != nil {
		return nil, 0, err
	}
	var ran, waited *redis.Cmd
	_, err = server.Pipelined(ctx, func(p redis.Pipeliner) error {
		ran = p.EvalSha(ctx, script.Hash(), []string{s.Root()}, args...)
		waited = p.Do(ctx, "WAIT", c.Replicas, c.Timeout.Milliseconds())
		return nil
	})
	if ran.Err() != nil {
		return nil, 0, ran.Err()
	}
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return nil, 0, err
	}
	confirmed, err := waited.Int()
	if redis.HasErrorPrefix(err, "UNBLOCKED") { // the master was demoted meanwhile
		confirmed, err = 0, nil
	}
	reply, ok := ran.Val().([]any)
	if !ok {
		reply = []any{ran.Val()}
	}
	return reply, confirmed, err
}
