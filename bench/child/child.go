// Package child starts programs that end with this one.
package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Child is a program that was started.
type Child struct {
	PID int
	// Done is closed when the program is gone. Err says why it ended; read it after Done.
	Done chan struct{}
	Err  error
	log  string
}

// Start starts a program, and writes what it says to the file log. The program does not get Ctrl-C,
// which is for this process. When this process dies, on Linux, it gets the signal onDeath.
func Start(cmd *exec.Cmd, log string, onDeath syscall.Signal) (*Child, error) {
	c := &Child{Done: make(chan struct{}), log: log}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	if cmd.Stdout == nil {
		cmd.Stdout = out
	}
	cmd.Stderr = out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	bind(cmd.SysProcAttr, onDeath)
	started := make(chan error, 1)
	go func() {
		// The parent-death signal is bound to the thread that starts the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.Done)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		c.PID = cmd.Process.Pid
		started <- nil
		c.Err = cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// Ended says whether the program is gone.
func (c *Child) Ended() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// Kill ends the program as a crash does, and waits until it is gone.
func (c *Child) Kill() {
	if !c.Ended() {
		_ = syscall.Kill(c.PID, syscall.SIGKILL) // it is gone then
	}
	<-c.Done
}

// Stop ends the program in the orderly way, or by force when that takes longer than patience.
func (c *Child) Stop(patience time.Duration) error {
	if c.Ended() {
		return nil
	}
	if err := syscall.Kill(c.PID, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) && !c.Ended() {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.Done:
		return nil
	case <-timer.C:
		c.Kill()
		return fmt.Errorf("it did not end within %s of being told to", patience)
	}
}

// Tail is the end of what the program said.
func (c *Child) Tail() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}
