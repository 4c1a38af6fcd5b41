package servers

import "syscall"

// dieWithParent lets the kernel end a server when the process that started it ends
// without stopping it.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	if attr.Pdeathsig == 0 {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}
