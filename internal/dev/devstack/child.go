package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// identity is the user that a program runs as; nil: the user of this process.
type identity struct {
	name     string
	uid, gid uint32
	groups   []uint32
}

// command is a program to start.
type command struct {
	name string // what messages call it
	path string
	args []string
	env  []string
	dir  string
	user *identity
	out  *os.File // stdout and stderr
	// onDeath is the signal that the program gets when this process dies, however it dies.
	onDeath syscall.Signal
}

// child is a program that runs. It ends with this process.
type child struct {
	command
	pid      int
	done     chan struct{} // closed when the program is gone
	err      error         // why it ended; read after done
	stopping atomic.Bool
}

// start starts the program. The goroutine that starts it stays on its operating system thread until
// the program ends: Linux sends the parent-death signal when the thread that forked ends, not when
// the process does, and Go ends idle threads.
func start(c command, log *slog.Logger) (*child, error) {
	p := &child{command: c, done: make(chan struct{})}
	cmd := exec.Command(c.path, c.args...) //nolint:noctx // it goes on after the call; stop and kill end it
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.Stdout, cmd.Stderr = c.out, c.out

	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		guard, err := startBound(cmd, c)
		if err != nil {
			started <- fmt.Errorf("start %s: %w", c.name, err)
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
		guard.release()
		if !p.stopping.Load() && log != nil {
			log.Warn("a server of the dev stack ended by itself", "server", c.name, "pid", p.pid, "error", p.err)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run runs a program to its end. When it fails, the error holds the end of what it printed.
func run(ctx context.Context, c command) error {
	out, err := os.CreateTemp("", "daybook-output-")
	if err != nil {
		return err
	}
	defer func() {
		_ = out.Close()
		_ = os.Remove(out.Name())
	}()
	c.out = out
	if c.onDeath == 0 {
		c.onDeath = syscall.SIGKILL
	}
	p, err := start(c, nil)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stopping.Store(true)
		_ = signalGroup(p.pid, c.onDeath)
		<-p.done
		return fmt.Errorf("%s: %w", c.name, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", c.name, p.err, logTail(out.Name()))
	}
	return nil
}

// stop asks the program to end and waits; when that takes too long it ends it by force.
func (p *child) stop(ctx context.Context, grace time.Duration) error {
	p.stopping.Store(true)
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	// SIGINT is PostgreSQL's fast shutdown (sessions are cut, a checkpoint is written) and Temporal's
	// orderly one.
	if err := signalProcess(p.pid, syscall.SIGINT); err != nil && !p.ended() {
		return errors.Join(fmt.Errorf("stop %s: %w", p.name, err), p.kill())
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return p.kill()
	}
}

// kill ends the program at once and waits until it is gone. A server with processes of its own gets
// SIGQUIT first, PostgreSQL's immediate shutdown, so that they end with it.
func (p *child) kill() error {
	p.stopping.Store(true)
	signals := []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL}
	if p.onDeath == syscall.SIGKILL {
		signals = signals[1:]
	}
	for _, sig := range signals {
		if p.ended() {
			return nil
		}
		if err := signalProcess(p.pid, sig); err != nil && !p.ended() {
			return fmt.Errorf("end %s (process %d): %w", p.name, p.pid, err)
		}
		timer := time.NewTimer(5 * time.Second)
		select {
		case <-p.done:
		case <-timer.C:
		}
		timer.Stop()
	}
	<-p.done
	return nil
}

func (p *child) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitReady calls ready until it returns nil, the program ends, or ctx does.
func (p *child) waitReady(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended while it started: %w\n%s\n(log: %s)", p.name, p.err, logTail(p.out.Name()),
				p.out.Name())
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer in time: %w (last answer: %w; log: %s)", p.name, ctx.Err(), err,
				p.out.Name())
		case <-tick.C:
		}
	}
}

// openLog opens a server's log for this start and keeps the one of the start before.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err == nil {
		if err := os.Rename(path, path+".previous"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// logTail returns the end of a log, for an error message.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > 16<<10 {
		if _, err := f.Seek(-16<<10, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return lastLines(string(bytes.TrimSpace(b)), 10)
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// environment returns this process's environment without the variables whose names begin with one
// of the prefixes.
func environment(add []string, without ...string) []string {
	var env []string
next:
	for _, kv := range os.Environ() {
		for _, prefix := range without {
			if strings.HasPrefix(kv, prefix) {
				continue next
			}
		}
		env = append(env, kv)
	}
	return append(env, add...)
}
