// Command keyfuse is the daemon and the command line of Keyfuse: it runs the
// tasks of config.yaml when their jobs are due, and schedules and looks after
// jobs from a shell.
//
// It promises what people and scripts rely on: settings come from a flag, else
// the environment, else the config file, else the default; -o json puts JSON on
// stdout and nothing else; an error is one line that says what is wrong and
// what to do next; the exit code says what kind of error it was:
//
//	0  done
//	1  failed
//	2  the command was called wrongly
//	3  no such job, task, threshold or dead letter
//	4  conflict: the id is scheduled already, its job has started, or a counter
//	   can't take the hit
//	5  Redis can't be reached, or refuses
//
// This package has flags and printing only. What is done is in the packages
// client, engine and internal/doctor.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // --timezone works where the system has no zones

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args, os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program, without anything global. args[0] is how it was
// called; lookup is as os.LookupEnv. It returns the exit code.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{self: selfName(args[0]), lookup: lookup, stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args[1:])
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	p, ran := errors.AsType[*problem](err)
	if !ran { // cobra itself: a flag or an argument that it does not know
		p = &problem{code: exitUsage, err: err}
	}
	a.complain(p)
	return p.code
}

// app is what all commands have in common.
type app struct {
	self           string // how to call this program, for hints
	lookup         func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          globalFlags
}

// globalFlags are the flags of every command; empty ones were not given.
type globalFlags struct {
	redisURL, config, output string
	idBase64                 bool
}

const rootLong = `Keyfuse is a trigger engine on Redis: a job is a key with a TTL and a class key
that names the task to run. "keyfuse serve" runs it.

A flag wins over its environment variable, which wins over the config file. With
-o json, stdout has JSON and nothing else: one document, or one a line.

Exit codes:
  0  done
  1  failed
  2  the command was called wrongly
  3  no such job, task, threshold or dead letter
  4  conflict: the id is scheduled already, its job has started, or a counter
     can't take the hit
  5  Redis can't be reached, or refuses`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "keyfuse",
		Short:         "Runs a task when a Redis key expires",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		_, err := a.json()
		return err
	}
	root.SetFlagErrorFunc(a.badFlag)
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.redisURL, "redis-url", "", "where the jobs are: embedded, redis://, rediss:// or unix:// (KEYFUSE_REDIS_URL); in the place of what the config file says")
	flags.StringVar(&a.flags.config, "config", "", "config file, else ./config.yaml if there is one (KEYFUSE_CONFIG)")
	flags.StringVarP(&a.flags.output, "output", "o", "", "text or json (KEYFUSE_OUTPUT; default text)")
	flags.BoolVar(&a.flags.idBase64, "id-base64", false, "ids on the command line are base64")
	root.AddCommand(
		a.serveCommand(), a.scheduleCommand(),
		a.rescheduleCommand(), a.cancelCommand(), a.fireCommand(),
		a.thresholdCommand(), a.hitCommand(),
		a.listCommand(), a.showCommand(), a.deadCommand(),
		a.pauseCommand(), a.resumeCommand(),
		a.tasksCommand(), a.nodesCommand(), a.statsCommand(), a.topCommand(),
		a.doctorCommand(), a.benchCommand(), a.configCommand(), a.versionCommand(),
	)
	return root
}

// noSuchCommand refuses what is no command, and names one that is near.
func (a *app) noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("%s --help lists the commands", cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("there is no command %q; %s", args[0], hint)
}

// badFlag says where the flags are listed. What stands before the flag of a
// command that is none is the real mistake.
func (a *app) badFlag(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		if noCommand := cmd.ValidateArgs(args); noCommand != nil {
			return noCommand
		}
	}
	return usagef("%w; see %s --help", err, cmd.CommandPath())
}

// group is a command that only holds others.
func (a *app) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: a.noSuchCommand, SuggestionsMinimumDistance: 2}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return usagef("say what: %s %s", cmd.CommandPath(), strings.Join(names, " | "))
	}
	cmd.AddCommand(commands...)
	return cmd
}

// do makes a function of ours what cobra runs; its errors are explained here,
// once.
func (a *app) do(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := fn(cmd.Context(), args); err != nil {
			return explain(err)
		}
		return nil
	}
}

// exactly, atLeastOne and none check how many arguments there are.

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef("%s takes %s, not %d arguments; see %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath())
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usagef("%s needs at least one %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
	}
}

func none(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no arguments, but got %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// selfName is what a person types to call this program again.
func selfName(argv0 string) string {
	if strings.Contains(filepath.ToSlash(argv0), "/go-build") {
		return "go run ./cmd/keyfuse"
	}
	return "keyfuse"
}
