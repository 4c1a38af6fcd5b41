package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// version is what the Go toolchain stamped into the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: none,
		RunE: a.do(func(context.Context, []string) error {
			asJSON, err := a.json()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"version": version(), "go": runtime.Version(), "format": wire.Format})
			}
			return a.printf("keyfuse %s (%s, wire format %d)\n", version(), runtime.Version(), wire.Format)
		}),
	}
}
