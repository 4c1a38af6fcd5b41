package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps jobs from running, and say how to mend it",
		Args:  none,
		RunE: a.do(a.withAny(func(ctx context.Context, s *session, _ []string) error {
			checks := doctor.Run(ctx, s.rdb, doctor.Options{
				IDPrefix:        s.cfg.Redis.IDPrefix,
				Embedded:        s.end.kind == kindEmbedded,
				Sentinel:        s.end.kind == kindSentinel,
				WaitReplicas:    s.cfg.Redis.WaitReplicas,
				NoNotifications: s.cfg.Redis.Notifications == config.NotificationsOff,
			})
			failed := slices.ContainsFunc(checks, func(c doctor.Check) bool { return c.Status == doctor.Fail })
			return errors.Join(a.printChecks(s, checks), reportedIf(failed))
		})),
	}
}

func (a *app) printChecks(s *session, checks []doctor.Check) error {
	if s.json {
		return a.printJSON(checks)
	}
	for _, c := range checks {
		if err := a.printf("%-4s  %-14s  %s\n", c.Status, c.Name, oneLine(c.Detail)); err != nil {
			return err
		}
		for line := range strings.Lines(c.Fix) {
			if err := a.printf("      %-14s  → %s\n", "", oneLine(line)); err != nil {
				return err
			}
		}
	}
	return nil
}
