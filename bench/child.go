package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/bench/measure"
	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// task is a measurement that a process of its own makes.
type task struct {
	Figure, Way string
	Round       int
	Size        string
	Dir         string
}

// said is a line that such a process prints.
type said struct {
	Value   *result.Value `json:",omitempty"`
	Missing string        `json:",omitempty"`
	Failed  string        `json:",omitempty"`
}

// stopWithin is how long a process may take to stop what it started, once it is told
// to end.
const stopWithin = time.Minute

// child makes a measurement in a process of its own, at most within limit. The values
// are those that it told of, with or without an error, which is servers.ErrMissing if
// what the way needs is not installed. Nothing that it started is left.
func (a *app) child(ctx context.Context, t task, limit time.Duration) ([]result.Value, error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is in the temporary folder
	t.Dir = dir
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd, err := again(limited, "one", t)
	if err != nil {
		return nil, err
	}
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, a.stderr
	cmd.SysProcAttr = measure.OwnGroup(syscall.SIGTERM)
	cmd.WaitDelay = stopWithin
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly, nobody is left
	}
	values, why := read(printed.Bytes())
	switch {
	case limited.Err() != nil && why != nil:
		return values, fmt.Errorf("stopped after %s: %w", limit, why)
	case limited.Err() != nil:
		return values, fmt.Errorf("stopped after %s", limit)
	case why != nil:
		return values, why
	}
	return values, err
}

// again is this program with a hidden command, which ends by a SIGTERM when ctx does.
func again(ctx context.Context, command string, what any) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, command, string(text))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd, nil
}

// read reads what a process printed: its values, and why there are no more.
func read(printed []byte) (values []result.Value, why error) {
	for line := range bytes.Lines(printed) {
		var s said
		if err := json.Unmarshal(line, &s); err != nil {
			return values, fmt.Errorf("it printed %.100q: %w", line, err)
		}
		switch {
		case s.Value != nil:
			values = append(values, *s.Value)
		case s.Missing != "":
			why = missing(s.Missing)
		case s.Failed != "":
			why = errors.New(s.Failed)
		}
	}
	return values, why
}

// missing is servers.ErrMissing with what is missing.
type missing string

func (m missing) Error() string { return string(m) }

func (missing) Is(err error) bool { return err == servers.ErrMissing }

// oneCommand is what child calls.
func (a *app) oneCommand() *cobra.Command {
	return &cobra.Command{
		Use: "one TASK", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t task
			if err := json.Unmarshal([]byte(args[0]), &t); err != nil {
				return err
			}
			var telling sync.Mutex
			tell := func(s said) {
				telling.Lock()
				defer telling.Unlock()
				_ = json.NewEncoder(a.stdout).Encode(s) // the other end notices
			}
			err := a.one(cmd.Context(), t, func(v result.Value) { tell(said{Value: &v}) })
			switch {
			case errors.Is(err, servers.ErrMissing):
				tell(said{Missing: err.Error()})
			case err != nil:
				tell(said{Failed: err.Error()})
				return errReported
			}
			return nil
		},
	}
}

func (a *app) one(ctx context.Context, t task, tell func(result.Value)) error {
	kind, ok := measure.Find(t.Figure)
	if !ok {
		return fmt.Errorf("there is no figure %q", t.Figure)
	}
	w, c, err := a.find(kind, t.Way)
	if err != nil {
		return err
	}
	sizes, err := measure.Named(t.Size)
	if err != nil {
		return err
	}
	lab := &measure.Lab{
		Way: w, Counting: c, Round: t.Round, Sizes: sizes, Dir: t.Dir, Tell: tell, Log: a.stderr,
		Work: func(work measure.Work) (*exec.Cmd, error) { return again(context.WithoutCancel(ctx), "work", work) },
	}
	return lab.Measure(ctx, kind)
}

// workCommand is a worker's process.
func (a *app) workCommand() *cobra.Command {
	return &cobra.Command{
		Use: "work WORK", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var work measure.Work
			if err := json.Unmarshal([]byte(args[0]), &work); err != nil {
				return err
			}
			w, _, err := a.find(measure.Kind{}, work.Way)
			if err != nil {
				return err
			}
			return work.Do(cmd.Context(), w)
		},
	}
}
