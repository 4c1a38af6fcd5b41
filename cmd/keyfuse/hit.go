package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (a *app) hitCommand() *cobra.Command {
	var hit client.Hit
	cmd := &cobra.Command{
		Use:   "hit ID",
		Short: "Count a hit of a threshold's counter",
		Long: `Count a hit of a threshold's counter, and tell how many there are and whether
this one fired.

If the connection breaks, nobody knows whether the hit was counted. With a
--request-id the same command can be given again: within an hour it counts once.`,
		Example: `  keyfuse hit signups
  keyfuse hit signups --by 5
  keyfuse hit mails --item '{"to": "ann@example.com"}' --request-id mail-4711`,
		Args: exactly(1, "the id of one counter"),
	}
	flags := cmd.Flags()
	flags.Int64Var(&hit.By, "by", 1, "how many hits it counts for")
	flags.StringVar(&hit.Item, "item", "", "text for the task: a window collects the items of its hits")
	flags.StringVar(&hit.RequestID, "request-id", "", "a name of this hit, of which another counts nothing for an hour")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		switch {
		case hit.By < 1:
			return usagef("--by %d is too low: want at least 1 hit", hit.By)
		case flags.Changed("item") && hit.Item == "":
			return usagef("--item is empty: say what the task gets, or leave --item out")
		case flags.Changed("request-id") && hit.RequestID == "":
			return usagef("--request-id is empty: name the hit, or leave --request-id out")
		}
		return a.with(func(ctx context.Context, s *session, args []string) error { return a.hit(ctx, s, args[0], hit) })(ctx, args)
	})
	return cmd
}

func (a *app) hit(ctx context.Context, s *session, arg string, hit client.Hit) error {
	var err error
	if hit.ID, err = a.id(arg); err != nil {
		return err
	}
	counted, err := s.Hit(ctx, hit)
	if err != nil {
		return err
	}
	if s.json {
		return a.printJSON(view.HitOf(counted))
	}
	return a.printf("%s: %s\n", view.Printable(counted.ID), hitText(counted, time.Now()))
}

func hitText(c client.Counted, now time.Time) string {
	hits := view.Tally(c.Count, c.Threshold)
	ends := "window ends " + distance(c.Ends, now) + " (" + clock(c.Ends) + ")"
	switch {
	case c.Fired:
		return "fired with " + hits
	case c.Count >= c.Threshold: // mode once
		return hits + ", has fired; " + ends
	}
	return hits + ", " + ends
}
