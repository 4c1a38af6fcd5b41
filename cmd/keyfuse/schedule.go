package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// whenFlags say when: so long from now, or at a time.
type whenFlags struct{ in, at, timezone string }

func (w *whenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.in, "in", "", "so long from now, with a unit: 1500ms, 90s, 30m, 7d")
	cmd.Flags().StringVar(&w.at, "at", "", "at a time: 2026-12-01T09:00:00Z, or 2026-12-01 09:00 on local clocks; past is at once")
	cmd.Flags().StringVar(&w.timezone, "timezone", "", "whose clocks --at means, such as Asia/Shanghai (default: local)")
}

// read gives the delay or the time; exactly one of them must be asked for.
func (w *whenFlags) read() (time.Duration, time.Time, error) {
	switch {
	case w.in == "" && w.at == "":
		return 0, time.Time{}, usagef("say when: --in 30m, or --at 2026-12-01T09:00:00Z")
	case w.in != "" && w.at != "":
		return 0, time.Time{}, usagef("--in and --at exclude each other: leave one out")
	}
	zone, err := w.zone()
	if err != nil {
		return 0, time.Time{}, err
	}
	return parseWhen(w.in, w.at, zone)
}

func (w *whenFlags) zone() (*time.Location, error) {
	if w.timezone == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(w.timezone)
	if err != nil {
		return nil, usagef("there is no time zone %q: write it as in Asia/Shanghai or UTC", w.timezone)
	}
	return zone, nil
}

func parseWhen(in, at string, zone *time.Location) (time.Duration, time.Time, error) {
	if at != "" {
		t, err := config.ParseTime(at, zone)
		if err != nil {
			return 0, t, usagef("%w", err)
		}
		return 0, t, nil
	}
	d, err := config.ParseDuration(in)
	if err != nil {
		return 0, time.Time{}, usagef("the delay %w", err)
	}
	return d, time.Time{}, nil
}

type scheduleFlags struct {
	when               whenFlags
	payload            payloadFlags
	id, from, ifExists string
	strict             bool
}

func (a *app) scheduleCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "schedule TASK (--in D | --at T)",
		Short: "Schedule a job, or many from a file",
		Long: `Schedule a job.

With --from FILE, or - for stdin, schedule one job a line of newline-delimited
JSON: {"id", "task", "in" or "at", "payload"}; id and payload may be left out,
and may be given as id_base64 and payload_base64. Lines that are wrong are told
with their number, and the others go on.`,
		Example: `  keyfuse schedule cancel-order --id order:42 --in 30m
  keyfuse schedule report --at "2026-12-01 09:00" --timezone Asia/Shanghai --payload '{"week": 48}'
  keyfuse schedule --from jobs.ndjson`,
	}
	f.when.add(cmd)
	cmd.Flags().StringVar(&f.id, "id", "", "the job's id, its Redis key (default: a random one)")
	f.payload.add(cmd)
	cmd.Flags().StringVar(&f.ifExists, "if-exists", "fail", "what to do if the id is scheduled already: fail, replace or keep")
	cmd.Flags().StringVar(&f.from, "from", "", "schedule the jobs of a file, - for stdin")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "refuse a task that nobody serves and no job has used")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		if err := f.check(args); err != nil {
			return err
		}
		if cmd.Flags().Changed("id") && f.id == "" {
			return usagef("--id is empty: name the job, or leave --id out for a random id")
		}
		if f.from != "" {
			return a.with(func(ctx context.Context, s *session, _ []string) error { return a.scheduleFrom(ctx, s, f) })(ctx, nil)
		}
		return a.with(func(ctx context.Context, s *session, args []string) error { return a.schedule(ctx, s, args[0], f) })(ctx, args)
	})
	return cmd
}

// check finds what does not go together.
func (f *scheduleFlags) check(args []string) error {
	choices := []string{string(client.Fail), string(client.Replace), string(client.Keep)}
	alone := f.id == "" && f.payload == (payloadFlags{}) && f.when.in == "" && f.when.at == ""
	switch {
	case !slices.Contains(choices, f.ifExists):
		return usagef("--if-exists %q is unknown: want %s", f.ifExists, strings.Join(choices, ", "))
	case f.from != "" && (len(args) > 0 || !alone):
		return usagef("--from takes task, id, time and payload from the file: leave the others out")
	case f.from != "":
		return nil
	case len(args) != 1:
		return usagef("keyfuse schedule takes the name of one task, not %d arguments; see keyfuse schedule --help", len(args))
	}
	_, _, err := f.when.read()
	return err
}

func (a *app) schedule(ctx context.Context, s *session, task string, f scheduleFlags) error {
	spec := client.Spec{Task: task, IfExists: client.IfExists(f.ifExists)}
	var err error
	if spec.In, spec.At, err = f.when.read(); err != nil {
		return err
	}
	if spec.ID, err = a.id(f.id); err != nil {
		return err
	}
	if spec.Payload, err = a.payload(f.payload, s.cfg.Engine.MaxPayload); err != nil {
		return err
	}
	known, knownErr := s.known(ctx) // before the job makes its task known
	switch {
	case !f.strict:
	case knownErr != nil:
		return knownErr
	case !known.has(task):
		return failf(exitMissing, "%w; start a daemon that serves it, or leave out --strict", known.unknown(task))
	}
	made, err := s.Schedule(ctx, spec)
	if err != nil && !errors.Is(err, client.ErrUnconfirmed) {
		return err
	}
	if err := a.printScheduled(s, made); err != nil {
		return err
	}
	if knownErr == nil {
		a.warnUnknown(known, task)
	}
	return err
}

// warnUnknown warns of tasks that nobody serves and no job has used.
func (a *app) warnUnknown(known knownTasks, tasks ...string) {
	for _, task := range tasks {
		if !known.has(task) {
			a.notef("warning: %s; jobs wait until somebody does", known.unknown(task))
		}
	}
}

func (a *app) printScheduled(s *session, made client.Scheduled) error {
	if s.json {
		return a.printJSON(s.scheduledJSON(made))
	}
	what := "scheduled"
	switch {
	case made.Replaced:
		what = "replaced"
	case made.Kept:
		what = "kept, as it was scheduled before:"
	}
	return a.printf("%s %s: %s, due %s\n", what, view.Printable(made.ID), view.Printable(made.Task), when(made.Due, time.Now()))
}

// knownTasks are the tasks that live nodes serve, and those that jobs have used.
type knownTasks struct{ served, indexed []string }

func (k knownTasks) has(task string) bool {
	return slices.Contains(k.served, task) || slices.Contains(k.indexed, task)
}

func (k knownTasks) unknown(task string) error {
	if len(k.served) == 0 {
		return fmt.Errorf("nobody serves the task %q: no daemon runs", task)
	}
	return fmt.Errorf("nobody serves the task %q; served are %s", task, oneLine(strings.Join(k.served, ", ")))
}

func (s *session) known(ctx context.Context) (knownTasks, error) {
	stats, err := s.Stats(ctx)
	if err != nil {
		return knownTasks{}, err
	}
	var k knownTasks
	for _, t := range stats.Tasks {
		k.indexed = append(k.indexed, t.Task)
	}
	now, err := s.rdb.Time(ctx).Result()
	for _, n := range stats.Nodes {
		if n.Until.After(now) {
			k.served = append(k.served, n.Tasks...)
		}
	}
	slices.Sort(k.served)
	k.served = slices.Compact(k.served)
	return k, err
}
