package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	var size bench.Size
	var names []string
	for _, m := range bench.All() {
		names = append(names, m.Name)
	}
	defaults := bench.DefaultSize()
	cmd := &cobra.Command{
		Use:   "bench [" + strings.Join(names, "|") + "]...",
		Short: "Measure what the configured Redis and this machine can do",
		Long: `Measure what the configured Redis and this machine can do: all of it, or what is named.

It schedules jobs under names of its own, runs them with an engine of its own,
and removes them. Other users of that Redis will feel it. With the default sizes
it takes about three minutes and, in Redis, half a GiB.`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if !slices.Contains(names, arg) {
					return usagef("there is nothing to measure that is called %q: want some of %s", arg, strings.Join(names, ", "))
				}
			}
			return nil
		},
		RunE: a.do(a.with(func(ctx context.Context, s *session, args []string) error {
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return a.bench(ctx, s, size, args)
		})),
		PreRunE: func(*cobra.Command, []string) error { return checkSize(size) },
	}
	flags := cmd.Flags()
	flags.IntVar(&size.Burst, "burst", defaults.Burst, "jobs due at one moment")
	flags.IntVar(&size.Spread, "spread", defaults.Spread, "jobs spread over --over, whose lateness is measured")
	flags.IntVar(&size.Pending, "pending", defaults.Pending, "jobs pending beside those")
	flags.IntVar(&size.Bare, "bare", defaults.Bare, "bare keys that expire at one moment")
	flags.IntVar(&size.Hits, "hits", defaults.Hits, "hits of counters, five times each way")
	flags.DurationVar(&size.Over, "over", defaults.Over, "see --spread")
	flags.DurationVar(&size.Handler, "handler", defaults.Handler, "how long the handler of a bare key takes")
	flags.DurationVar(&size.Idle, "idle", defaults.Idle, "how long to watch an idle engine")
	return cmd
}

// checkSize refuses zero too: bench would take it for its default.
func checkSize(s bench.Size) error {
	if min(s.Burst, s.Spread, s.Pending, s.Bare, s.Hits) < 1 || min(s.Over, s.Handler, s.Idle) <= 0 {
		return usagef("a size is too low: numbers must be 1 or more, and durations longer than 0s; see keyfuse bench --help")
	}
	return nil
}

// bench prints each measurement's figures as they come.
func (a *app) bench(ctx context.Context, s *session, size bench.Size, names []string) error {
	b, err := bench.New(s.rdb, size, slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	missed := false
	for _, m := range bench.All() {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		figures, err := b.Measure(ctx, m)
		if err != nil {
			return err
		}
		for _, f := range figures {
			missed = missed || !f.Met
			if err := a.printFigure(s.json, f); err != nil {
				return err
			}
		}
	}
	return reportedIf(missed)
}

func (a *app) printFigure(asJSON bool, f bench.Figure) error {
	if asJSON {
		return a.printJSON(f)
	}
	verdict := ""
	switch {
	case f.Target == "":
	case f.Met:
		verdict = "ok: " + f.Target
	default:
		verdict = "missed: " + f.Target
	}
	value := strconv.FormatFloat(f.Value, 'f', 2, 64)
	if f.Value >= 1000 {
		value = strconv.FormatFloat(f.Value, 'f', 0, 64)
	}
	return a.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-58s %12s %-12s %s", f.Name, value, f.Unit, verdict), " "))
}
