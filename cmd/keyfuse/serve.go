package main

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/registry"
)

type serveFlags struct {
	concurrency         int
	http                string
	logLevel, logFormat string
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: claim jobs that are due and run their tasks",
		Long: `Run the daemon: claim jobs that are due and run their tasks.

At its start it schedules the timers among the triggers of the config file, and
leaves those alone that are scheduled already. So an "in" trigger is armed anew by
each start of a daemon that finds it fired, and an "at" trigger whose time is over
is not. Thresholds are defined as the file has them, in the place of what their
ids had before.

The first SIGINT or SIGTERM drains: running handlers get engine.shutdown_grace,
what is left is given back. A second one stops at once.`,
		Args: none,
	}
	cmd.Flags().IntVar(&f.concurrency, "concurrency", 0, "runs at a time (KEYFUSE_CONCURRENCY; default: engine.concurrency)")
	cmd.Flags().StringVar(&f.http, "http", "", "where the dashboard and the API listen, host:port, or off (KEYFUSE_HTTP; default: http.listen)")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error (KEYFUSE_LOG_LEVEL; default info)")
	cmd.Flags().StringVar(&f.logFormat, "log-format", "", "text or json (KEYFUSE_LOG_FORMAT; default text)")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		cfg, err := a.serveConfig(f, cmd.Flags().Changed("concurrency"))
		if err != nil {
			return err
		}
		log, err := a.logger(f)
		if err != nil {
			return err
		}
		return a.serve(ctx, cfg, log)
	})
	return cmd
}

// serveConfig is the config with what only serve has flags for.
func (a *app) serveConfig(f serveFlags, given bool) (config.Config, error) {
	cfg, _, err := a.settings(config.Load)
	if err != nil {
		return cfg, err
	}
	if text := a.env("KEYFUSE_CONCURRENCY"); !given && text != "" {
		given = true
		if f.concurrency, err = strconv.Atoi(text); err != nil {
			return cfg, usagef("KEYFUSE_CONCURRENCY is %q: want a number", text)
		}
	}
	if given && f.concurrency < 1 {
		return cfg, usagef("the concurrency is %d: want at least 1", f.concurrency)
	}
	cfg.Engine.Concurrency = cmp.Or(f.concurrency, cfg.Engine.Concurrency)
	if listen := cmp.Or(f.http, a.env("KEYFUSE_HTTP")); listen != "" {
		cfg.HTTP.Listen, cfg.HTTP.Given = listen, true
		if listen == "off" {
			cfg.HTTP.Listen = ""
		}
		if err := cfg.HTTP.Check(); err != nil {
			return cfg, usagef("--http or KEYFUSE_HTTP: %w", err)
		}
	}
	return cfg, nil
}

func (a *app) logger(f serveFlags) (*slog.Logger, error) {
	var level slog.Level
	name := cmp.Or(f.logLevel, a.env("KEYFUSE_LOG_LEVEL"), "info")
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return nil, usagef("log level %q is unknown: want debug, info, warn or error", name)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch format := cmp.Or(f.logFormat, a.env("KEYFUSE_LOG_FORMAT"), "text"); format {
	case "text":
		return slog.New(slog.NewTextHandler(a.stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.stderr, opts)), nil
	default:
		return nil, usagef("log format %q is unknown: want text or json", format)
	}
}

// serve runs the daemon until ctx ends or a signal comes.
func (a *app) serve(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	end, err := endpointOf(cfg.Redis)
	if err != nil {
		return err
	}
	ctx, stop := stopOnSignal(ctx, log)
	defer stop()
	silenceRedis(log)
	if end.kind == kindEmbedded {
		server, err := embedded.Start(embedded.Config{Addr: end.opts.Addr, Logger: log})
		if err != nil {
			return failf(exitFailed, "the embedded Redis can't start: %w; if another `keyfuse serve` or Redis has the port, stop it, "+
				"or choose another port for both daemon and commands: --redis-url %s127.0.0.1:6381", err, embeddedScheme)
		}
		defer server.Close() //nolint:errcheck // it keeps nothing that could be lost
	}
	// Every script may be run twice, so a command may be sent again; what tasks
	// send may not.
	rdb, once, forWeb := end.dial(3), end.dial(-1), end.dial(-1)
	defer closeAll(rdb, once, forWeb)
	site, err := openSite(cfg, forWeb, log)
	if err != nil {
		return err
	}
	defer site.close()
	if err := awaitRedis(ctx, end, rdb, log); err != nil {
		return orStopped(ctx, err)
	}
	log.Info("connected", "redis", end)
	reg, err := buildRegistry(cfg.Tasks, once, log)
	if err != nil {
		return err
	}
	return end.explain(a.runEngine(ctx, rdb, reg, cfg, log, site, func() { a.welcome(cfg, end, site) }))
}

func closeAll(clients ...redis.UniversalClient) {
	for _, c := range clients {
		_ = c.Close() // all answers are in
	}
}

// orStopped is nil if the daemon was stopped while it waited.
func orStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runEngine runs the engine, and arms the triggers once it is ready.
func (a *app) runEngine(ctx context.Context, rdb redis.UniversalClient, reg *registry.Registry, cfg config.Config, log *slog.Logger, site *site, welcome func()) error {
	ready := make(chan struct{})
	conf := engineConfig(cfg, log)
	conf.Observer = site.observer()
	conf.Observer.Ready = sync.OnceFunc(func() {
		site.status.Ready()
		close(ready)
	})
	defer context.AfterFunc(ctx, site.status.Stop)()
	eng, err := engine.New(rdb, reg, conf)
	if err != nil {
		return err
	}
	c, err := client.New(rdb, clientConfig(cfg))
	if err != nil {
		return err
	}
	arming, stopArming := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ready:
		case <-arming.Done():
			return
		}
		welcome()
		armTriggers(arming, c, cfg.Triggers, log)
	})
	err = eng.Run(ctx)
	stopArming()
	wg.Wait()
	return err
}

func engineConfig(cfg config.Config, log *slog.Logger) engine.Config {
	grace := cfg.Engine.ShutdownGrace
	if grace == 0 {
		grace = -1 // none; the engine takes zero for its default
	}
	return engine.Config{
		Concurrency:   cfg.Engine.Concurrency,
		Lease:         cfg.Engine.Lease,
		ShutdownGrace: grace,
		MaxPayload:    int(cfg.Engine.MaxPayload),
		IDPrefix:      cfg.Redis.IDPrefix,
		Notifications: engine.Notifications(cfg.Redis.Notifications),
		Logger:        log,
		Version:       version(),
	}
}

// welcome says what to type next, to people who try Keyfuse out.
func (a *app) welcome(cfg config.Config, end endpoint, site *site) {
	if end.kind != kindEmbedded {
		return
	}
	_, port, err := net.SplitHostPort(end.opts.Addr)
	if err != nil || len(cfg.Tasks) == 0 {
		return
	}
	task := cfg.Tasks[0].Name
	for _, t := range cfg.Tasks {
		if t.Name == "cancel-order" {
			task = t.Name
		}
	}
	flag := ""
	if end.opts.Addr != embeddedAddr {
		flag = " --redis-url " + embeddedScheme + end.opts.Addr
	}
	// It is only a hint: if stdout is closed, the daemon goes on.
	_ = a.printf(`
Keyfuse runs on its embedded Redis, 127.0.0.1:%[1]s. Nothing in it is kept after it stops;
set redis.url in config.yaml to a Redis of your own for that.
What to type next, in another shell:

    redis-cli -p %[1]s SET order:42 order:42 EX 5
    redis-cli -p %[1]s SET class:order:42 %[2]s

or without redis-cli:

    %[3]s schedule %[2]s --in 5s%[4]s

%[5]s`, port, task, a.self, flag, site.invitation())
}
