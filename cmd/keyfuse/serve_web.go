package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/web"
	"github.com/keyfuse-io/keyfuse/web/metrics"
)

// site is the dashboard and the API of a daemon. It answers from the daemon's start to
// its end: that the engine is not ready yet, or that Redis is away, is for it to tell.
type site struct {
	status  *web.Status
	history *web.History
	metrics *metrics.Metrics // nil if nothing listens

	addr    net.Addr
	stop    context.CancelFunc
	serving sync.WaitGroup
}

// openSite begins to answer, unless the config says that nothing listens. An address
// that nobody asked for may be another daemon's: then this one does without.
func openSite(cfg config.Config, rdb redis.UniversalClient, log *slog.Logger) (*site, error) {
	s := &site{status: web.NewStatus(), history: web.NewHistory(time.Now), stop: func() {}}
	if cfg.HTTP.Listen == "" {
		return s, nil
	}
	listener, err := net.Listen("tcp", cfg.HTTP.Listen)
	if err != nil && !cfg.HTTP.Given {
		log.Warn("no dashboard and no API: another program has the port; name one with --http", "listen", cfg.HTTP.Listen, "err", err)
		return s, nil
	}
	if err != nil {
		return nil, failf(exitFailed, "can't listen for HTTP: %w; stop what has the port, or choose another one with --http", err)
	}
	c, err := client.New(rdb, clientConfig(cfg))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.metrics = metrics.New(c, version(), namesOf(cfg.Tasks)...)
	server, err := web.New(web.Config{
		Client: c, Redis: rdb, Token: cfg.HTTP.Token, IDPrefix: cfg.Redis.IDPrefix, MaxPayload: cfg.Engine.MaxPayload,
		Replicas: cfg.Redis.WaitReplicas > 0, Trace: cfg.HTTP.Trace, Status: s.status, History: s.history, Metrics: s.metrics.Handler(log), Log: log,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.addr = stop, listener.Addr()
	s.serving.Go(func() {
		if err := server.Serve(ctx, listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("the dashboard and the API have failed; jobs go on", "err", err)
		}
	})
	log.Info("listening", "http", s.url(), "token", cfg.HTTP.Token != "")
	return s, nil
}

func namesOf(tasks []config.Task) []string {
	names := make([]string, len(tasks))
	for i, task := range tasks {
		names[i] = task.Name
	}
	return names
}

func (s *site) url() string { return "http://" + s.addr.String() }

// observer is told what the engine does.
func (s *site) observer() engine.Observer {
	o := engine.Observer{Degraded: s.status.Degraded}
	if s.metrics == nil {
		return o
	}
	o.Settled = s.history.Settled
	return s.metrics.Observe(o)
}

// invitation says where to look, to people who try Keyfuse out.
func (s *site) invitation() string {
	if s.addr == nil {
		return ""
	}
	return fmt.Sprintf("The dashboard is at %s\n\n", s.url())
}

func (s *site) close() {
	s.stop()
	s.serving.Wait()
}
