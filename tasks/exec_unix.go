//go:build unix

package tasks

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// groupPoll is how often a group that was told to end is looked at. Nothing
// tells when the last process of a group is gone.
const groupPoll = 10 * time.Millisecond

// group is a command's process group.
type group struct {
	cmd  *exec.Cmd
	told time.Time // when it was told to end; zero if it never was
}

// newGroup gives cmd, not yet started, a process group of its own, and has it
// told to end when cmd's context ends.
func newGroup(cmd *exec.Cmd) *group {
	g := &group{cmd: cmd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = g.terminate
	return g
}

func (g *group) terminate() error {
	err := g.signal(syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	g.told = time.Now()
	return err
}

// clear is called after the command has ended. If the group was told to end,
// it gives the command's children what is left of delay, kills the rest and
// answers true.
func (g *group) clear(delay time.Duration) bool {
	if g.told.IsZero() {
		return false
	}
	for g.signal(0) == nil && time.Since(g.told) < delay {
		time.Sleep(groupPoll)
	}
	_ = g.signal(syscall.SIGKILL) // it fails if nobody is left, and that is the aim
	return true
}

func (g *group) signal(s syscall.Signal) error { return syscall.Kill(-g.cmd.Process.Pid, s) }
