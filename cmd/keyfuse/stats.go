package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (a *app) statsCommand() *cobra.Command {
	return a.overviewCommand("stats", "Count jobs, and show tasks, nodes, thresholds and Redis", func(ctx context.Context, s *session, o *view.Overview) error {
		thresholds, err := s.Thresholds(ctx)
		if err != nil && len(thresholds) == 0 {
			return err
		}
		// The others are told although one can't be read.
		return errors.Join(a.printStats(s, *o, thresholds, view.AskRedis(ctx, s.rdb)), err)
	})
}

func (a *app) printStats(s *session, o view.Overview, thresholds []client.ThresholdInfo, r view.Redis) error {
	if s.json {
		all := view.Stats{Overview: o, Thresholds: []view.Threshold{}, Redis: r}
		for _, t := range thresholds {
			all.Thresholds = append(all.Thresholds, view.ThresholdOf(t))
		}
		return a.printJSON(all)
	}
	told := errors.Join(a.printTasks(o.Tasks), a.printf("\n"), a.printNodes(o.Nodes), a.printf("\n"))
	if len(thresholds) > 0 {
		told = errors.Join(told, a.printThresholds(thresholds), a.printf("\n"))
	}
	of := ""
	if r.Masters > 0 {
		of = " Cluster of " + view.Count(r.Masters, "master")
	}
	return errors.Join(told, a.printf("Redis%s %s: %d keys, %s used, %d clients\n", of, view.Printable(r.Version), r.Keys, view.Bytes(r.UsedMemory), r.Clients))
}
