package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
)

// session is a command's connection.
type session struct {
	*client.Client
	rdb  redis.UniversalClient
	cfg  config.Config
	json bool
	end  endpoint
}

// with runs a command on a connection, unless the data are of another format.
func (a *app) with(fn func(ctx context.Context, s *session, args []string) error) func(context.Context, []string) error {
	return a.withAny(func(ctx context.Context, s *session, args []string) error {
		// What else goes wrong, the command meets as well.
		if err := s.CheckFormat(ctx); errors.Is(err, client.ErrFormat) {
			return err
		}
		return fn(ctx, s, args)
	})
}

// withAny runs a command on a connection, whatever is there.
func (a *app) withAny(fn func(ctx context.Context, s *session, args []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		s, err := a.open()
		if err != nil {
			return err
		}
		err = fn(ctx, s, args)
		// All answers are in: a failure to close changes nothing.
		_ = s.rdb.Close()
		return s.explain(err)
	}
}

func (a *app) open() (*session, error) {
	cfg, _, err := a.settings(config.LoadConnection)
	if err != nil {
		return nil, err
	}
	end, err := endpointOf(cfg.Redis)
	if err != nil {
		return nil, err
	}
	silenceRedis(slog.New(slog.DiscardHandler))
	s := &session{cfg: cfg, end: end, rdb: end.dial(-1)}
	s.json, _ = a.json() // checked before any command runs
	s.Client, err = client.New(s.rdb, clientConfig(cfg))
	return s, err
}

func clientConfig(cfg config.Config) client.Config {
	return client.Config{
		MaxPayload: int(cfg.Engine.MaxPayload), IDPrefix: cfg.Redis.IDPrefix,
		WaitReplicas: cfg.Redis.WaitReplicas, WaitTimeout: cfg.Redis.WaitTimeout,
	}
}

// explain is of a command's own connection.
func (s *session) explain(err error) error { return s.end.explain(err) }

// silenceRedis sends what go-redis logs by itself to debug: all of it is also
// an error that somebody gets. The logger is the library's only global.
func silenceRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "go-redis", "text", fmt.Sprintf(format, args...))
}
