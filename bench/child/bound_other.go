//go:build !linux

package child

import "syscall"

// bind keeps Ctrl-C from a process. Where the system cannot end it with this one, it stays when
// this one is killed.
func bind(attributes *syscall.SysProcAttr, _ syscall.Signal) { attributes.Setpgid = true }
