package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/view"
	"github.com/keyfuse-io/keyfuse/registry"
	"github.com/keyfuse-io/keyfuse/tasks"
)

// stopOnSignal gives a context that the first SIGINT or SIGTERM ends; the second
// ends the program. stop takes the signals back.
func stopOnSignal(ctx context.Context, log *slog.Logger) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if !first {
					log.Error("stopped at once: what was running runs again when its lease is over", "signal", s.String())
					os.Exit(exitFailed)
				}
				log.Info("stopping: running handlers may end; the same signal again stops at once", "signal", s.String())
				cancel()
			case <-done:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		cancel()
	}
}

// awaitRedis waits until Redis answers. It gives up only where waiting won't
// help: a wrong password, a missing permission.
func awaitRedis(ctx context.Context, end endpoint, rdb redis.UniversalClient, log *slog.Logger) error {
	return persist(ctx, log, "waiting for Redis", func() error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		// A Redis that is loading answers PING only with that.
		return end.explain(rdb.Ping(ctx).Err())
	})
}

// persist tries until it works, less and less often, and says why not when the
// reason is a new one.
func persist(ctx context.Context, log *slog.Logger, what string, try func() error) error {
	said := ""
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := try()
		if err == nil {
			if said != "" {
				log.Info("Redis answers again")
			}
			return nil
		}
		p := explain(err)
		if p.code != exitRedis || p.final {
			return p
		}
		if text := p.Error(); text != said {
			log.Warn(what, "reason", text)
			said = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// armTriggers schedules and defines the triggers of the config file. One that
// can't be is told, and stops neither the others nor the daemon.
func armTriggers(ctx context.Context, c *client.Client, triggers []config.Trigger, log *slog.Logger) {
	for _, t := range triggers {
		log := log.With("id", t.ID, "task", t.Task)
		if t.Threshold != nil {
			defineTrigger(ctx, c, t, log)
		} else {
			scheduleTrigger(ctx, c, t, log)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// scheduleTrigger schedules a timer. One that is scheduled already stays as it
// is. An "at" trigger whose time is over has fired, or its time came while no
// daemon ran: either way it is not for now.
func scheduleTrigger(ctx context.Context, c *client.Client, t config.Trigger, log *slog.Logger) {
	if !t.At.IsZero() && t.At.Before(time.Now()) {
		log.Info("trigger is over", "at", view.Stamp(t.At))
		return
	}
	var made client.Scheduled
	err := persist(ctx, log, "scheduling triggers", func() error {
		var err error
		made, err = c.Schedule(ctx, client.Spec{ID: t.ID, Task: t.Task, Payload: t.Payload, In: t.In, At: t.At, IfExists: client.Keep})
		return err
	})
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, client.ErrUnconfirmed):
		log.Warn("trigger is scheduled, but too few replicas confirm", "due", view.Stamp(made.Due), "replicas", made.Replicas)
	case err != nil:
		log.Error("trigger can't be scheduled", "error", err)
	default:
		log.Info("trigger is scheduled", "due", view.Stamp(made.Due), "kept", made.Kept)
	}
}

// defineTrigger defines a threshold, in the place of what its id had.
func defineTrigger(ctx context.Context, c *client.Client, t config.Trigger, log *slog.Logger) {
	threshold := client.Threshold{
		ID: t.ID, Task: t.Task, Payload: t.Payload,
		Count: t.Threshold.Count, Within: t.Threshold.Within,
		OnTimeout: client.OnTimeout(t.Threshold.OnTimeout), Mode: client.Mode(t.Threshold.Mode),
		Debounce: t.Threshold.Debounce, MaxWait: t.Threshold.MaxWait,
		MaxItems: t.Threshold.MaxItems, MaxBytes: int(t.Threshold.MaxBytes),
	}
	var outcome client.Defined
	err := persist(ctx, log, "defining triggers", func() error {
		var err error
		outcome, err = c.DefineThreshold(ctx, threshold)
		return err
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Error("trigger can't be defined", "error", err)
	case outcome == client.DefinedSame:
		log.Debug("trigger is defined as before", "fires_after", view.Rule(threshold))
	default:
		log.Info("trigger is defined", "fires_after", view.Rule(threshold), "replaced", outcome == client.DefinedReplaced)
	}
}

// buildRegistry makes the tasks of the config file.
func buildRegistry(list []config.Task, rdb redis.UniversalClient, log *slog.Logger) (*registry.Registry, error) {
	reg := registry.New()
	for _, t := range list {
		h, err := handler(t.Kind, rdb, log)
		if err != nil {
			return nil, failf(exitFailed, "tasks.%s: %w; correct it in the config file", t.Name, err)
		}
		reg.Register(t.Name, h, t.Options)
	}
	return reg, nil
}

func handler(kind config.Kind, rdb redis.UniversalClient, log *slog.Logger) (registry.Handler, error) {
	switch k := kind.(type) {
	case config.LogTask:
		return tasks.NewLog(tasks.Log{Level: k.Level, Logger: log})
	case config.HTTPTask:
		return tasks.NewHTTP(tasks.HTTP{URL: k.URL, Method: k.Method, Secret: k.Secret, Headers: k.Headers})
	case config.ExecTask:
		env := make([]string, 0, len(k.Env))
		for _, name := range slices.Sorted(maps.Keys(k.Env)) {
			env = append(env, name+"="+k.Env[name])
		}
		return tasks.NewExec(tasks.Exec{Command: k.Command, Dir: k.Dir, Env: env, Logger: log})
	case config.StreamTask:
		return tasks.NewStream(tasks.Stream{Redis: rdb, Key: k.Key, MaxLen: k.MaxLen})
	case config.ListTask:
		return tasks.NewList(tasks.List{Redis: rdb, Key: k.Key})
	case config.PublishTask:
		return tasks.NewPublish(tasks.Publish{Redis: rdb, Channel: k.Channel})
	}
	return nil, errors.New("this release has no such kind of task")
}
