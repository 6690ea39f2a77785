package devstack

import "os/exec"

// startBound starts cmd so that it dies with this process: the kernel sends it onDeath. Go's
// runtime requests that signal after it has changed the user, because the change would clear it,
// and notices a parent that died in between. The caller holds its thread.
func startBound(cmd *exec.Cmd, c command) (*watchdog, error) {
	if useWatchdog {
		return startWatched(cmd, c)
	}
	cmd.SysProcAttr = attributes(c)
	cmd.SysProcAttr.Pdeathsig = c.onDeath
	return nil, cmd.Start()
}

// useWatchdog lets a test on Linux exercise what other systems use.
var useWatchdog = false
