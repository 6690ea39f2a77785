package child

import "syscall"

// bind ends a process with this one, and keeps Ctrl-C from it.
func bind(attributes *syscall.SysProcAttr, onDeath syscall.Signal) {
	attributes.Setpgid, attributes.Pdeathsig = true, onDeath
}
