package main

import "syscall"

// bound ends a process with this one, and keeps Ctrl-C from it: it is told to drain.
func bound() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
