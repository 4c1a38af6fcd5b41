//go:build unix && !linux

package measure

import "syscall"

// OwnGroup puts a process into a group of its own, that it can be killed with all that
// it starts. Only Linux can tie its life to the one that started it.
func OwnGroup(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
