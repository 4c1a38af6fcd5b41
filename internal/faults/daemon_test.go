package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// daemonEnv makes this test's binary a daemon, with the configuration it holds.
const daemonEnv = "KEYFUSE_FAULT_DAEMON"

// TestMain silences go-redis, which writes each failed dial to standard error.
func TestMain(m *testing.M) {
	logging.Disable()
	if text := os.Getenv(daemonEnv); text != "" {
		os.Exit(daemonMain(text))
	}
	m.Run()
}

// daemonConfig is what a daemon is told.
type daemonConfig struct {
	Conn         conn
	Record       string // the file for its events
	Lease, Grace time.Duration
}

// daemonMain is a daemon process: an engine that runs until SIGTERM, or until
// the test's process is gone, which closes standard input.
func daemonMain(text string) int {
	var cfg daemonConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := runDaemon(cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runDaemon(cfg daemonConfig) error {
	file, err := os.OpenFile(cfg.Record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	rec := recorder{file}
	rdb := cfg.Conn.open()
	defer rdb.Close()
	e, err := engine.New(rdb, handlers(rec), engine.Config{
		Lease: cfg.Lease, ShutdownGrace: cfg.Grace,
		Logger: slog.New(&leaseWatch{slog.NewTextHandler(os.Stderr, nil), rec}),
		Observer: engine.Observer{
			Ready:    func() { rec.write(event{kind: ready}) },
			Degraded: func(why string) { rec.write(event{kind: degraded, word: why}) },
			Settled:  rec.settled,
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := e.Run(ctx); err != nil {
		return err
	}
	rec.write(event{kind: stopped})
	return nil
}

// leaseWatch is a log handler that also records when the lease was lost, which
// only the log tells.
type leaseWatch struct {
	slog.Handler
	rec recorder
}

func (l *leaseWatch) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "lease lost") {
		l.rec.write(event{kind: leaseLost, word: r.Message})
	}
	return l.Handler.Handle(ctx, r)
}

// Tasks of the load.
const (
	taskPlain = "plain" // jobs that the load schedules
	taskCount = "count" // what thresholds fire
)

// handlers do what a job's payload says, and record it.
func handlers(rec recorder) *registry.Registry {
	reg := registry.New()
	handler := registry.Func(func(ctx context.Context, job registry.Job) error {
		rec.started(job)
		err := perform(ctx, job)
		rec.write(event{kind: ended, run: job.RunID, attempt: job.Attempt, word: endOf(ctx, err)})
		return err
	})
	// However often daemons die, no job dies with them; failures are tried again
	// soon, so that a run is short.
	opts := registry.Options{Retries: registry.Retries{Max: 10_000, Initial: 200 * time.Millisecond, MaxDelay: time.Second}}
	reg.Register(taskPlain, handler, opts)
	reg.Register(taskCount, handler, opts)
	return reg
}

var errOnPurpose = errors.New("failed on purpose")

// perform does what the second word of a payload says: "fail" fails in the first
// attempt, a number is how many ms it takes.
func perform(ctx context.Context, job registry.Job) error {
	_, what, _ := strings.Cut(string(job.Payload), " ")
	if what == "fail" && job.Attempt == 1 {
		return errOnPurpose
	}
	ms, err := strconv.Atoi(what)
	if err != nil {
		return nil
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func endOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return endOK
	case errors.Is(err, errOnPurpose):
		return endFailed
	case errors.Is(context.Cause(ctx), engine.ErrShutdown):
		return endShutdown
	case errors.Is(context.Cause(ctx), engine.ErrLeaseLost):
		return endLease
	}
	return endOther
}
