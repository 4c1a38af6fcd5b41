// Command bench runs the same work through every common way to run delayed tasks, side
// by side on this machine, and writes what came of it.
//
// "bench run" goes through the ways in turn, round after round, with each measurement
// in a process of its own and against servers of its own, which are stopped again. What
// is missing here is named and left out. Results are kept after every measurement: a run
// that was interrupted goes on with --resume, and parts can be run at different times.
// "bench report" makes the page and the chart of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/bench/way"
	"github.com/keyfuse-io/keyfuse/bench/ways"
)

func main() {
	redis.SetLogger(silence{}) // what it logs is also an error that somebody gets
	a := &app{ways: ways.All(), countings: ways.Countings(), stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// silence is a logger for go-redis, which has no other setting than a global one.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// app is the whole program, without anything global.
type app struct {
	ways           []way.Way
	countings      []way.Counting
	stdout, stderr io.Writer
}

// run returns the exit code. A signal to end lets all that was started end first.
func (a *app) run(ctx context.Context, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintln(a.stderr, "bench:", err)
	}
	if err != nil {
		return 1
	}
	return 0
}

// errReported is the error of a command that has said what is wrong already.
var errReported = errors.New("reported")

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Compares the common ways to run delayed tasks",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(a.runCommand(), a.reportCommand(), a.waysCommand(), a.oneCommand(), a.workCommand())
	return root
}

func (a *app) waysCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ways",
		Short: "List what is compared",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, w := range a.ways {
				fmt.Fprintf(a.stdout, "%-20s %s\n", w.Name, w.What)
			}
			for _, c := range a.countings {
				fmt.Fprintf(a.stdout, "%-20s for thresholds: %s\n", c.Name, c.What)
			}
			return nil
		},
	}
}
