package ways

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// childGrace is how long a child may take to end what it does, once it is told to stop.
const childGrace = 10 * time.Second

// newChild prepares a program that on Linux the kernel ends with this process, so that a
// kill -9 of a worker is one of all that works for it. When ctx ends it gets a SIGTERM.
func newChild(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = dieWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = childGrace
	return cmd
}

// call runs a program to its end in a folder, and gives what it prints. What can't be
// found is missing.
func call(ctx context.Context, folder, program string, args ...string) (string, error) {
	cmd := newChild(ctx, program, args...)
	cmd.Dir = folder
	printed, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%w: %w", servers.ErrMissing, err)
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w: %s", cmd, err, lastOf(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(printed)), err
}

// lastOf is the end of a text, where programs say why they gave up.
func lastOf(text string) string {
	const most = 500
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-most):]
}

// tail keeps the end of what is written to it.
type tail struct{ text string }

func (t *tail) Write(p []byte) (int, error) {
	t.text = lastOf(t.text + string(p))
	return len(p), nil
}

var _ io.Writer = (*tail)(nil)
