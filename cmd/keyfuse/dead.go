package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// deadFlags choose dead letters.
type deadFlags struct {
	task     string
	all, yes bool
}

func (a *app) deadCommand() *cobra.Command {
	return a.group("dead", "List, requeue or delete dead letters",
		a.deadListCommand(),
		a.deadChangeCommand("requeue", "Give dead letters all their attempts again, due now", "requeued", (*client.Client).RequeueDead),
		a.deadChangeCommand("delete", "Delete dead letters for good", "deleted", (*client.Client).DeleteDead),
	)
}

func (a *app) deadListCommand() *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{Use: "list [ID... | --task T | --all]", Short: "List dead letters (default: all)"}
	cmd.Flags().StringVar(&f.task, "task", "", "of one task only")
	cmd.Flags().BoolVar(&f.all, "all", false, "all of them")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		if err := f.check(args, false); err != nil {
			return err
		}
		return a.with(func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 {
				return a.deadOf(ctx, s, args)
			}
			return a.list(ctx, s, listFlags{state: string(client.Dead), task: f.task})
		})(ctx, args)
	})
	return cmd
}

// deadOf lists the dead letters of some jobs.
func (a *app) deadOf(ctx context.Context, s *session, args []string) error {
	ids, err := a.ids(args)
	if err != nil {
		return err
	}
	show, shown := a.jobPrinter(s, client.Dead), 0
	failed := a.each(s, ids, func(id string) error {
		jobs, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if job.State == client.Dead {
				shown++
				if err := show.job(job); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := show.end(shown, ""); err != nil {
		return err
	}
	return failed
}

type deadChange func(*client.Client, context.Context, client.DeadFilter) (int, error)

func (a *app) deadChangeCommand(name, short, done string, change deadChange) *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{Use: name + " (ID... | --task T | --all)", Short: short}
	cmd.Flags().StringVar(&f.task, "task", "", "all of one task")
	cmd.Flags().BoolVar(&f.all, "all", false, "all of them")
	if name == "delete" {
		cmd.Flags().BoolVar(&f.yes, "yes", false, "with --all: don't ask")
	}
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		if err := f.check(args, true); err != nil {
			return err
		}
		return a.with(func(ctx context.Context, s *session, args []string) error {
			if name == "delete" && f.all && !f.yes {
				if err := a.confirmDelete(); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				return a.changeDead(ctx, s, args, done, change)
			}
			n, err := change(s.Client, ctx, client.DeadFilter{Task: f.task})
			if err != nil {
				return err
			}
			return a.printChanged(s, done, n)
		})(ctx, args)
	})
	return cmd
}

func (f deadFlags) check(args []string, must bool) error {
	ways := 0
	for _, given := range []bool{len(args) > 0, f.task != "", f.all} {
		if given {
			ways++
		}
	}
	if ways > 1 || must && ways == 0 {
		return usagef("say which dead letters: ids, or --task T, or --all")
	}
	return nil
}

func (a *app) confirmDelete() error {
	sure, err := a.confirm("Delete all dead letters for good?")
	if err == nil && !sure {
		err = usagef("nothing was deleted; to delete all dead letters, add --yes")
	}
	return err
}

// changeDead changes the dead letters of named jobs, one by one, so that the
// answer says which of them has none.
func (a *app) changeDead(ctx context.Context, s *session, args []string, done string, change deadChange) error {
	ids, err := a.ids(args)
	if err != nil {
		return err
	}
	total := 0
	failed := a.each(s, ids, func(id string) error {
		n, err := change(s.Client, ctx, client.DeadFilter{IDs: []string{id}})
		if err == nil && n == 0 {
			err = &problem{code: exitMissing, err: fmt.Errorf("no dead letter of %q", id), next: "keyfuse dead list shows what there is"}
		}
		total += n
		return err
	})
	if err := a.printChanged(s, done, total); err != nil {
		return err
	}
	return failed
}

func (a *app) printChanged(s *session, done string, n int) error {
	if s.json {
		return a.printJSON(map[string]int{done: n})
	}
	return a.printf("%s %s\n", done, view.Count(n, "dead letter"))
}
