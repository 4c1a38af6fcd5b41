package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (a *app) topCommand() *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use: "top", Short: "Watch what is pending, overdue, running and failing", Args: none,
		Long: `Watch what is pending, overdue, running and failing, until Ctrl-C. What it reads
costs Redis a few commands a task, whatever their jobs.`,
	}
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "how often to look")
	cmd.RunE = a.do(a.with(func(ctx context.Context, s *session, _ []string) error {
		return a.watch(ctx, every, func(ctx context.Context, a *app) error { return a.top(ctx, s) })
	}))
	return cmd
}

// top prints one look.
func (a *app) top(ctx context.Context, s *session) error {
	o, err := s.overview(ctx)
	if err != nil {
		return err
	}
	horizons, now, err := s.Horizons(ctx, time.Minute, time.Hour)
	if err != nil {
		return err
	}
	r := view.AskRedis(ctx, s.rdb)
	return errors.Join(
		a.printf("keyfuse top   %s   Redis %s: %d keys, %s used, %d clients\n\n", clock(now), view.Printable(r.Version), r.Keys, view.Bytes(r.UsedMemory), r.Clients),
		a.printSoon(o.Tasks, horizons, now), a.printf("\n"), a.printNodes(o.Nodes),
	)
}

func (a *app) printSoon(tasks []view.Task, horizons []client.Horizon, now time.Time) error {
	byTask := make(map[string]client.Horizon)
	for _, h := range horizons {
		byTask[h.Task] = h
	}
	t := newTable(a.stdout, "TASK", "OVERDUE", "FOR", "1 MIN", "1 HOUR", "PENDING", "RUNNING", "RETRYING", "DEAD", "")
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	for _, task := range tasks {
		h, since, note := byTask[task.Task], "", ""
		if h.Within == nil {
			h.Within = make([]int64, 2)
		}
		if late := now.Sub(h.Since); h.Overdue > 0 && late >= time.Second {
			since = late.Round(time.Second).String()
		}
		switch {
		case task.Paused:
			note = "paused"
		case len(task.Nodes) == 0:
			note = "served by nobody"
		}
		t.row(view.Printable(task.Task), n(h.Overdue), since, n(h.Within[0]), n(h.Within[1]), n(task.Pending), n(task.Running), n(task.Retrying), n(task.Dead), note)
	}
	return t.end()
}
