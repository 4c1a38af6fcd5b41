package measure

import "syscall"

// OwnGroup puts a process into a group of its own, that it can be killed with all that
// it starts. The kernel sends it the signal when the one that started it is gone.
func OwnGroup(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
}
