//go:build !unix

package tasks

import (
	"os/exec"
	"time"
)

// group stands for a process group where there is none: the command itself is
// killed when its context ends, its children are not.
type group struct{ told bool }

func newGroup(cmd *exec.Cmd) *group {
	g := &group{}
	cmd.Cancel = func() error {
		g.told = true
		return cmd.Process.Kill()
	}
	return g
}

// clear tells whether the command was killed.
func (g *group) clear(time.Duration) bool { return g.told }
