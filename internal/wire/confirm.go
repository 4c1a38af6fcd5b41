package wire

import (
	"cmp"
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

// Confirmed is what came of it.
type Confirmed struct {
	Replicas int
	Err      error // why none were asked, or nil
}

// runConfirmed is run, and then waits for replicas; it gives how many of them have
// whatever the script wrote or found. Both go over one connection in one pipeline:
// so WAIT can't be answered by another server than the one that ran the script.
func (s *Store) runConfirmed(ctx context.Context, c Confirm, script *redis.Script, args ...any) ([]any, Confirmed, error) {
	if c.Replicas == 0 {
		reply, err := s.run(ctx, script, args...)
		return reply, Confirmed{}, err
	}
	for until := time.Now().Add(movingPatience); ; {
		reply, confirmed, err := s.pipeConfirmed(ctx, c, script, args)
		switch {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			if err = s.loadThere(ctx, script); err != nil {
				return nil, Confirmed{}, err
			}
			continue
		case isElsewhere(err):
			s.refresh(ctx)
		case !moving(err):
			return reply, confirmed, s.lookAgain(ctx, err)
		}
		if err := pauseMoving(ctx, until); err != nil {
			return nil, Confirmed{}, err
		}
	}
}

// isElsewhere says whether a server answered that the partition is another's now, and
// did nothing. Only the cluster's client follows that by itself, and not for ever.
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

func (s *Store) pipeConfirmed(ctx context.Context, c Confirm, script *redis.Script, args []any) ([]any, Confirmed, error) {
	server, err := s.Server(ctx)
	if err != nil {
		return nil, Confirmed{}, err
	}
	var ran, waited *redis.Cmd
	var wrote *redis.StatusCmd
	_, err = server.Pipelined(ctx, func(p redis.Pipeliner) error {
		ran = p.EvalSha(ctx, script.Hash(), []string{s.Root()}, args...)
		// Since Redis 7.2 WAIT is about what this connection has written last, and a
		// script that found its work done has written nothing.
		wrote = p.Set(ctx, s.Of("confirm"), 1, time.Second)
		waited = p.Do(ctx, "WAIT", c.Replicas, c.Timeout.Milliseconds())
		return nil
	})
	if ran.Err() != nil {
		return nil, Confirmed{}, ran.Err()
	}
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return nil, Confirmed{}, err
	}
	confirmed := Confirmed{Err: cmp.Or(wrote.Err(), waited.Err())}
	if confirmed.Err == nil {
		confirmed.Replicas, confirmed.Err = waited.Int()
	}
	return asList(ran.Val()), confirmed, nil
}
