//go:build !linux

package main

import "syscall"

// bound keeps Ctrl-C from a process: it is told to drain. Where the system cannot end it with this
// one, it stays when this one is killed.
func bound() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
