//go:build unix && !linux

package servers

import "syscall"

// dieWithParent does nothing: only Linux can tie a child's life to its parent's.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }
