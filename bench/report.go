package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/bench/report"
)

func (a *app) reportCommand() *cobra.Command {
	var file, dir string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write comparison.md and comparison.svg from results",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			results, err := load(file)
			if err != nil {
				return err
			}
			if len(results.Values) == 0 {
				return fmt.Errorf("there are no results in %s: bench run measures", file)
			}
			return report.Write(*results, dir)
		},
	}
	cmd.Flags().StringVar(&file, "results", "results.json", "the file of bench run")
	cmd.Flags().StringVar(&dir, "dir", "../docs", "the folder to write them into")
	return cmd
}
