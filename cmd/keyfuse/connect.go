package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
)

// The embedded Redis listens on one port, so that other shells find it.
const (
	embeddedScheme = "embedded://"
	embeddedAddr   = "127.0.0.1:6380"
)

// endpoint is where Redis is.
type endpoint struct {
	embedded bool // it is in the daemon's own process
	opts     redis.Options
}

// endpointOf reads a URL that was checked: embedded, embedded://HOST:PORT, or
// one that go-redis knows. Its errors don't repeat the URL, which may hold a
// password.
func endpointOf(raw string) (endpoint, error) {
	if raw == config.Embedded {
		raw = embeddedScheme + embeddedAddr
	}
	if addr, ok := strings.CutPrefix(raw, embeddedScheme); ok {
		if host, port, err := net.SplitHostPort(addr); err != nil || port == "" || !net.ParseIP(host).IsLoopback() {
			return endpoint{}, usagef("the embedded Redis can't listen on %q: write it as in embedded://%s", addr, embeddedAddr)
		}
		return endpoint{embedded: true, opts: redis.Options{Addr: addr}}, nil
	}
	opts, err := redis.ParseURL(raw)
	if _, shows := errors.AsType[*url.Error](err); shows {
		return endpoint{}, usagef("the URL of Redis is no URL: in its user name and password, write special characters as %%XX")
	}
	if err != nil {
		return endpoint{}, usagef("the URL of Redis can't be used: %w", err)
	}
	return endpoint{opts: *opts}, nil
}

// dial makes a client; it does not talk to Redis yet. retries is how often a
// command is sent again, -1 for never: it may then be executed twice.
func (e endpoint) dial(retries int) *redis.Client {
	opts := e.opts
	opts.ClientName = "keyfuse"
	opts.ContextTimeoutEnabled = true
	opts.MaxRetries = retries
	opts.DialerRetries = 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&opts)
}

// session is a command's connection.
type session struct {
	*client.Client
	rdb  *redis.Client
	cfg  config.Config
	json bool
	end  endpoint
}

// with runs a command on a connection.
func (a *app) with(fn func(ctx context.Context, s *session, args []string) error) func(context.Context, []string) error {
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
	end, err := endpointOf(cfg.Redis.URL)
	if err != nil {
		return nil, err
	}
	silenceRedis(slog.New(slog.DiscardHandler))
	s := &session{cfg: cfg, end: end, rdb: end.dial(-1)}
	s.json, _ = a.json() // checked before any command runs
	s.Client, err = client.New(s.rdb, client.Config{MaxPayload: int(cfg.Engine.MaxPayload), IDPrefix: cfg.Redis.IDPrefix})
	return s, err
}

// explain knows that an embedded Redis is away because no daemon runs.
func (s *session) explain(err error) error {
	if s.end.embedded && errors.Is(err, syscall.ECONNREFUSED) {
		return &problem{
			exitRedis, fmt.Errorf("nothing listens on %s, where the embedded Redis would be", s.end.opts.Addr),
			"start `keyfuse serve` first, or set redis.url",
		}
	}
	return err
}

// silenceRedis sends what go-redis logs by itself to debug: all of it is also
// an error that somebody gets. The logger is the library's only global.
func silenceRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "go-redis", "text", fmt.Sprintf(format, args...))
}
