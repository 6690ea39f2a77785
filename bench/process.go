package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/daybook-dev/daybook/bench/child"
	"github.com/daybook-dev/daybook/workflows"
)

// queueProcess is a worker process, and whether all that it told is read.
type queueProcess struct {
	*worker
	ready, read chan struct{}
	// input, once it is closed, has the process end in the orderly way; nil: a signal does.
	input io.WriteCloser
}

// startProcess starts a process of this program that works a queue, and does not wait until it
// does. What its handlers tell goes to j.
func (b *bench) startProcess(ctx context.Context, config processConfig, j *journal) (*queueProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config.Name, config.TemporalAddress = b.unique(), b.stack.TemporalAddress
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	cmd.Env = append(workerEnvironment(config.DatabaseURL, b.stack.TemporalAddress), processEnv+"="+string(text))
	return b.launch(config.Name, cmd, j)
}

// launch starts a process that works a queue. What it tells goes to j, under its name.
func (b *bench) launch(name string, cmd *exec.Cmd, j *journal) (*queueProcess, error) {
	w := &queueProcess{
		worker: &worker{name: name}, ready: make(chan struct{}), read: make(chan struct{}),
	}
	lines, tells, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = tells
	w.Child, err = child.Start(cmd, b.logOf(name), syscall.SIGKILL)
	_ = tells.Close() // it is the worker's now
	if err != nil {
		_ = lines.Close()
		return nil, err
	}
	go func() {
		defer close(w.read)
		j.follow(name, lines, func() { close(w.ready) })
		_ = lines.Close()
	}()
	return w, nil
}

// ended says why the process is gone; nil while it is there.
func (w *queueProcess) ended() error {
	select {
	case <-w.Done:
		return fmt.Errorf("a worker ended: %w\n%s", w.Err, w.Tail())
	default:
		return nil
	}
}

// stop ends the process in the orderly way, or by force when that takes too long.
func (w *queueProcess) stop() error {
	if w.input == nil {
		return w.worker.stop()
	}
	if err := w.input.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return errors.Join(err, w.worker.stop())
	}
	timer := time.NewTimer(workerStop)
	defer timer.Stop()
	select {
	case <-w.read:
		<-w.Done
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("worker %s did not end when it was told to", w.name), w.worker.stop())
	}
}

// awaitProcess returns when the worker asks for work.
func (b *bench) awaitProcess(ctx context.Context, q loadedQueue, w *queueProcess) error {
	if q.own() {
		return b.awaitPolls(ctx, workflows.JobsTaskQueue, w.name, w.ended)
	}
	return awaitReady(ctx, w)
}

// awaitReady returns when the process says that it is ready.
func awaitReady(ctx context.Context, w *queueProcess) error {
	ctx, cancel := context.WithTimeout(ctx, workerStart)
	defer cancel()
	select {
	case <-w.ready:
		return nil
	case <-w.Done:
		return w.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
}
