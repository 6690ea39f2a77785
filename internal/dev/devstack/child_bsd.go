//go:build unix && !linux

package devstack

import "os/exec"

func startBound(cmd *exec.Cmd, c command) (*watchdog, error) {
	return startWatched(cmd, c)
}
