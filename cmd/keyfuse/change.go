package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (a *app) rescheduleCommand() *cobra.Command {
	var w whenFlags
	cmd := &cobra.Command{
		Use:   "reschedule ID (--in D | --at T)",
		Short: "Give a waiting job another due time",
		Args:  exactly(1, "the id of one job"),
	}
	w.add(cmd)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		in, at, err := w.read()
		if err != nil {
			return err
		}
		return a.with(func(ctx context.Context, s *session, args []string) error {
			return a.move(args[0], s, "rescheduled", func(id string) (client.Job, error) {
				return s.Reschedule(ctx, id, in, at)
			})
		})(ctx, args)
	})
	return cmd
}

func (a *app) fireCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fire ID",
		Short: "Make a waiting job due now, whatever its due time",
		Args:  exactly(1, "the id of one job"),
		RunE: a.do(a.with(func(ctx context.Context, s *session, args []string) error {
			return a.move(args[0], s, "fired", func(id string) (client.Job, error) {
				return s.Fire(ctx, id)
			})
		})),
	}
}

func (a *app) move(arg string, s *session, done string, change func(id string) (client.Job, error)) error {
	id, err := a.id(arg)
	if err != nil {
		return err
	}
	job, err := change(id)
	if err != nil && !errors.Is(err, client.ErrUnconfirmed) {
		return err
	}
	return errors.Join(a.printMoved(s, done, job), err)
}

func (a *app) printMoved(s *session, done string, job client.Job) error {
	if s.json {
		return a.printJSON(view.MovedOf(job))
	}
	return a.printf("%s %s: %s, due %s\n", done, view.Printable(job.ID), view.Printable(job.Task), when(job.Due, time.Now()))
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID...",
		Short: "Remove jobs that have not started",
		Long:  "Remove jobs that have not started. Those that can't be are told one a line, and\nthe others are cancelled.",
		Args:  atLeastOne("id"),
		RunE: a.do(a.with(func(ctx context.Context, s *session, args []string) error {
			ids, err := a.ids(args)
			if err != nil {
				return err
			}
			return a.each(s, ids, func(id string) error {
				if err := s.Cancel(ctx, id); err != nil {
					return err
				}
				if !s.json {
					return a.printf("cancelled %s\n", view.Printable(id))
				}
				return a.printJSON(view.CancelledOf(id))
			})
		})),
	}
}

// each does something for each id and goes on after those that can't be done,
// but not after Redis has failed. The exit code is that of the errors, if all
// are of one kind.
func (a *app) each(s *session, ids []string, do func(id string) error) error {
	code := exitDone
	for _, id := range ids {
		p := explainOrNil(s.explain(do(id)))
		if p == nil {
			continue
		}
		if p.code == exitRedis {
			return p
		}
		a.complain(p)
		if code != exitDone && code != p.code {
			code = exitFailed
		} else {
			code = p.code
		}
	}
	if code != exitDone {
		return &problem{code: code, err: errReported}
	}
	return nil
}
