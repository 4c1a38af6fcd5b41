package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// fileErrorJSON is one thing that is wrong with a config file.
type fileErrorJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (a *app) configCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say everything that is wrong with a config file",
		Args:  cobra.MaximumNArgs(1),
		RunE: a.do(func(_ context.Context, args []string) error {
			if len(args) > 0 {
				a.flags.config = args[0]
			}
			return a.checkConfig()
		}),
	}
	return a.group("config", "Look after config.yaml", check)
}

func (a *app) checkConfig() error {
	asJSON, err := a.json()
	if err != nil {
		return err
	}
	cfg, path, err := a.file(config.Load)
	wrong, isWrong := errors.AsType[config.Errors](err)
	switch {
	case err != nil && !isWrong:
		return err
	case asJSON:
		return errors.Join(a.printFileErrors(path, wrong), reportedIf(isWrong))
	case err != nil:
		return err
	case path == "":
		return failf(exitFailed, "there is no %s here; name the file: %s config check FILE", defaultConfig, a.self)
	}
	return a.printf("%s is well: %s, %s\n", view.Printable(path), view.Count(len(cfg.Tasks), "task"), view.Count(len(cfg.Triggers), "trigger"))
}

func (a *app) printFileErrors(path string, wrong config.Errors) error {
	list := []fileErrorJSON{}
	for _, e := range wrong {
		list = append(list, fileErrorJSON{e.File, e.Line, e.Path, fmt.Sprint(e.Msg)})
	}
	return a.printJSON(map[string]any{"file": path, "ok": len(wrong) == 0, "errors": list})
}

func reportedIf(failed bool) error {
	if failed {
		return &problem{code: exitFailed, err: errReported}
	}
	return nil
}
