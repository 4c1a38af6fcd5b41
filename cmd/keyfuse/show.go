package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is held of a job or a threshold",
		Args:  exactly(1, "the id of one job or threshold"),
		RunE: a.do(a.with(func(ctx context.Context, s *session, args []string) error {
			id, err := a.id(args[0])
			if err != nil {
				return err
			}
			jobs, threshold, err := view.Find(ctx, s.Client, id)
			if err != nil {
				return err
			}
			return a.show(s, jobs, threshold)
		})),
	}
}

func (a *app) show(s *session, jobs []client.Job, threshold *client.ThresholdInfo) error {
	if s.json {
		return a.printJSON(view.Whole(jobs, threshold))
	}
	now, between := time.Now(), ""
	var err error
	for _, job := range jobs {
		err = errors.Join(err, a.printf("%s", between), a.printJob(job, now))
		between = "\n"
	}
	if threshold != nil {
		err = errors.Join(err, a.printf("%s", between), a.printThreshold(*threshold, now))
	}
	return err
}
