package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (a *app) pauseCommand() *cobra.Command {
	return a.switchCommand("pause", "Keep every node from claiming runs of a task", "paused", "was paused already:", (*client.Client).Pause)
}

func (a *app) resumeCommand() *cobra.Command {
	return a.switchCommand("resume", "Undo pause", "resumed", "was not paused:", (*client.Client).Resume)
}

func (a *app) switchCommand(name, short, done, already string, change func(*client.Client, context.Context, string) (bool, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " TASK", Short: short, Args: exactly(1, "the name of one task"),
		RunE: a.do(a.with(func(ctx context.Context, s *session, args []string) error {
			known, knownErr := s.known(ctx)
			changed, err := change(s.Client, ctx, args[0])
			if err != nil {
				return err
			}
			if s.json {
				return a.printJSON(map[string]any{"task": args[0], "paused": name == "pause", "changed": changed})
			}
			if !changed {
				done = already
			}
			if err := a.printf("%s %s\n", done, args[0]); err != nil {
				return err
			}
			if name == "pause" && knownErr == nil {
				a.warnUnknown(known, args[0])
			}
			return nil
		})),
	}
}

func (s *session) overview(ctx context.Context) (view.Overview, error) {
	stats, err := s.Stats(ctx)
	if err != nil {
		return view.Overview{}, err
	}
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return view.Overview{}, err
	}
	return view.OverviewOf(stats, now), nil
}

func (a *app) tasksCommand() *cobra.Command {
	return a.overviewCommand("tasks", "List the tasks that jobs use or nodes serve", func(_ context.Context, s *session, o *view.Overview) error {
		if s.json {
			return a.printJSON(o.Tasks)
		}
		return a.printTasks(o.Tasks)
	})
}

func (a *app) nodesCommand() *cobra.Command {
	return a.overviewCommand("nodes", "List the daemons", func(_ context.Context, s *session, o *view.Overview) error {
		if s.json {
			return a.printJSON(o.Nodes)
		}
		return a.printNodes(o.Nodes)
	})
}

func (a *app) overviewCommand(name, short string, show func(context.Context, *session, *view.Overview) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: none,
		RunE: a.do(a.with(func(ctx context.Context, s *session, _ []string) error {
			o, err := s.overview(ctx)
			if err != nil {
				return err
			}
			return show(ctx, s, &o)
		})),
	}
}

func (a *app) printTasks(tasks []view.Task) error {
	if len(tasks) == 0 {
		return a.printf("no tasks: no job was scheduled yet, and no daemon runs\n")
	}
	t := newTable(a.stdout, "TASK", "PENDING", "RUNNING", "RETRYING", "DEAD", "SERVED BY", "")
	for _, task := range tasks {
		served, note := view.Count(len(task.Nodes), "node"), ""
		if len(task.Nodes) == 0 {
			served = "nobody"
		}
		if task.Paused {
			note = "paused"
		}
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		t.row(view.Printable(task.Task), n(task.Pending), n(task.Running), n(task.Retrying), n(task.Dead), served, note)
	}
	return t.end()
}

func (a *app) printNodes(nodes []view.Node) error {
	if len(nodes) == 0 {
		return a.printf("no nodes: start one with `%s serve`\n", a.self)
	}
	t := newTable(a.stdout, "NODE", "HOST", "PID", "VERSION", "STARTED", "STATE", "TASKS")
	now := time.Now()
	for _, n := range nodes {
		state := "alive"
		switch {
		case !n.Alive:
			state = "gone since " + n.Until
		case n.Degraded != "":
			state = "degraded: " + view.Clip(n.Degraded, 60)
		}
		started, _ := time.Parse(time.RFC3339, n.Started) // not told: the zero time
		since := ""
		if !started.IsZero() {
			since = distance(started, now)
		}
		t.row(view.Printable(n.Name), view.Printable(n.Host), strconv.Itoa(n.PID), view.Printable(n.Version), since, state, view.Clip(strings.Join(n.Tasks, " "), 60))
	}
	return t.end()
}
