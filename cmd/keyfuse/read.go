package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

type listFlags struct {
	state, task, prefix, cursor string
	limit                       int
	watch                       bool
}

func (a *app) listCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs, earliest first within each task",
		Long: `List jobs, earliest first within each task.

With -o json, one job a line; if --limit cut the list off, a last line
{"next_cursor": "…"} says where to go on with --cursor.`,
		Args: none,
	}
	cmd.Flags().StringVar(&f.state, "state", "pending", "pending, running, retrying or dead")
	cmd.Flags().StringVar(&f.task, "task", "", "of one task only")
	cmd.Flags().StringVar(&f.prefix, "prefix", "", "ids that begin so only")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most so many; 0 for all")
	cmd.Flags().StringVar(&f.cursor, "cursor", "", "go on where a list before was cut off")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "show what a terminal has room for, again and again, until Ctrl-C")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		if !slices.Contains([]client.State{client.Pending, client.Running, client.Retrying, client.Dead}, client.State(f.state)) {
			return usagef("--state %q is unknown: want pending, running, retrying or dead", f.state)
		}
		if f.limit < 0 {
			return usagef("--limit %d is negative: want a number of jobs, or 0 for all", f.limit)
		}
		return a.with(func(ctx context.Context, s *session, _ []string) error {
			if !f.watch {
				return a.list(ctx, s, f)
			}
			_, height := a.screen()
			f.limit = max(1, height-2)
			return a.watch(ctx, watchEvery, func(ctx context.Context, a *app) error { return a.list(ctx, s, f) })
		})(ctx, args)
	})
	return cmd
}

// watchEvery is how often a list is read again.
const watchEvery = 2 * time.Second

func (a *app) list(ctx context.Context, s *session, f listFlags) error {
	prefix, err := a.id(f.prefix)
	if err != nil {
		return err
	}
	filter := client.Filter{State: client.State(f.state), Task: f.task, Prefix: prefix}
	show := a.jobPrinter(s, filter.State)
	shown := 0
	for cursor := f.cursor; ; {
		n := 1000
		if f.limit > 0 {
			n = min(n, f.limit-shown)
		}
		page, err := s.List(ctx, filter, cursor, n)
		if err != nil {
			return err
		}
		for _, job := range page.Jobs {
			if err := show.job(job); err != nil {
				return err
			}
		}
		shown += len(page.Jobs)
		if cursor = page.Next; cursor == "" || f.limit > 0 && shown >= f.limit {
			return show.end(shown, cursor)
		}
	}
}

// jobPrinter prints a list of jobs as it is read.
type jobPrinter struct {
	a     *app
	json  bool
	state client.State
	now   time.Time
	table table
}

func (a *app) jobPrinter(s *session, state client.State) *jobPrinter {
	p := &jobPrinter{a: a, json: s.json, state: state, now: time.Now()}
	return p
}

func (p *jobPrinter) job(j client.Job) error {
	if p.json {
		return p.a.printJSON(view.JobOf(j))
	}
	if p.table.w == nil {
		p.table = newTable(p.a.stdout, p.header()...)
	}
	p.table.row(p.cells(j)...)
	return nil
}

func (p *jobPrinter) header() []string {
	switch p.state {
	case client.Running:
		return []string{"ID", "TASK", "STARTED", "ATTEMPT", "NODE"}
	case client.Retrying:
		return []string{"ID", "TASK", "NEXT ATTEMPT", "ATTEMPT", "LAST ERROR"}
	case client.Dead:
		return []string{"ID", "TASK", "DIED", "ATTEMPT", "LAST ERROR"}
	default:
		return []string{"ID", "TASK", "DUE", "PAYLOAD"}
	}
}

func (p *jobPrinter) cells(j client.Job) []string {
	id, task := view.Clip(j.ID, 60), view.Printable(j.Task)
	switch p.state {
	case client.Running:
		return []string{id, task, when(j.At, p.now), strconv.Itoa(j.Attempt), view.Printable(j.Node)}
	case client.Retrying, client.Dead:
		told := view.Clip(j.LastError, 60)
		if told == "" && isUnclaimed(j) {
			told = unclaimed
		}
		return []string{id, task, when(j.At, p.now), strconv.Itoa(j.Attempt), told}
	default:
		told := view.Clip(string(j.Payload), 40)
		if j.Window != nil {
			told = view.WindowText(j.Window)
		}
		return []string{id, task, when(j.Due, p.now), told}
	}
}

func (p *jobPrinter) end(shown int, next string) error {
	switch {
	case p.json && next != "":
		return p.a.printJSON(map[string]string{"next_cursor": next})
	case p.json:
		return nil
	case shown == 0:
		return p.a.printf("no %s jobs\n", p.state)
	}
	if err := p.table.end(); err != nil {
		return err
	}
	if next != "" {
		return p.a.printf("There are more: go on with --cursor %s\n", next)
	}
	return nil
}
