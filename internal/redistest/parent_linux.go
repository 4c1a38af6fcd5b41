package redistest

import "syscall"

// dieWithParent lets the kernel end the server when the test's process ends
// without cleanups: killed, or panicking at go test's timeout.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
