//go:build unix

package devstack

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// watchScript waits for a line, which means that the watched program is gone, or for the end of its
// input, which means that the process that started it died: then it signals the watched program.
const watchScript = `read -r line && exit 0; kill -s "$1" "$2"`

// watchdog is a small process that ends a program when this process dies, on systems without a
// parent-death signal. It reads from a pipe that the kernel closes when this process ends in any
// way.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startWatched starts cmd and a watchdog for it.
func startWatched(cmd *exec.Cmd, c command) (*watchdog, error) {
	cmd.SysProcAttr = attributes(c)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	abandon := func(err error) (*watchdog, error) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	sh := exec.Command("/bin/sh", "-c", watchScript, "sh", signalName(c.onDeath), strconv.Itoa(cmd.Process.Pid)) //nolint:noctx // it ends with the watched program
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := sh.StdinPipe()
	if err != nil {
		return abandon(err)
	}
	if err := sh.Start(); err != nil {
		return abandon(err)
	}
	return &watchdog{cmd: sh, pipe: pipe}, nil
}

// release ends the watchdog after the watched program is gone: its process id may soon be another
// program's.
func (w *watchdog) release() {
	if w == nil {
		return
	}
	_, _ = io.WriteString(w.pipe, "gone\n")
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGQUIT:
		return "QUIT"
	case syscall.SIGINT:
		return "INT"
	default:
		return "KILL"
	}
}
