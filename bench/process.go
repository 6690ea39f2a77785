package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/daybook-dev/daybook/workflows"
)

// queueProcess is a worker process, and whether all that it told is read.
type queueProcess struct {
	*worker
	ready, read chan struct{}
}

// startProcess starts a process of this program that works a queue, and does not wait until it
// does. What its handlers tell goes to j.
func (b *bench) startProcess(ctx context.Context, config processConfig, j *journal) (*queueProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := b.unique()
	w := &queueProcess{
		worker: &worker{name: name, log: filepath.Join(b.dir, name+".log"), done: make(chan struct{})},
		ready:  make(chan struct{}), read: make(chan struct{}),
	}
	config.Name, config.TemporalAddress = name, b.stack.TemporalAddress
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	lines, tells, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	cmd.Env = append(workerEnvironment(config.DatabaseURL, b.stack.TemporalAddress), processEnv+"="+string(text))
	cmd.Stdout = tells
	err = w.launch(cmd)
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

// awaitProcess returns when the worker asks for work.
func (b *bench) awaitProcess(ctx context.Context, q loadedQueue, w *queueProcess) error {
	ended := func() error {
		select {
		case <-w.done:
			return fmt.Errorf("the worker ended while it started: %w\n%s", w.err, w.tail())
		default:
			return nil
		}
	}
	if q.river == nil {
		return b.awaitPolls(ctx, workflows.JobsTaskQueue, w.name, ended)
	}
	ctx, cancel := context.WithTimeout(ctx, workerStart)
	defer cancel()
	select {
	case <-w.ready:
		return nil
	case <-w.done:
		return ended()
	case <-ctx.Done():
		return ctx.Err()
	}
}
