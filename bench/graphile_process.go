package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

// graphileProcess is a process of graphile-worker at work.
type graphileProcess struct {
	*worker
	input io.WriteCloser
	// ready is closed when the process waits to be told to work; read when all that it told is read.
	ready, read chan struct{}
	// done is how many jobs it says that it has done.
	done atomic.Int64
}

// startGraphile starts the process. failed is told when it ends, or says what cannot be understood.
func (b *bench) startGraphile(cmd *exec.Cmd, failed context.CancelCauseFunc) (*graphileProcess, error) {
	name := b.unique()
	p := &graphileProcess{
		worker: &worker{name: name, log: filepath.Join(b.dir, name+".log"), done: make(chan struct{})},
		ready:  make(chan struct{}), read: make(chan struct{}),
	}
	lines, tells, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, lines.Close(), tells.Close())
	}
	p.input, cmd.Stdout = input, tells
	err = p.launch(cmd)
	_ = tells.Close() // it is the process's now
	if err != nil {
		return nil, errors.Join(err, lines.Close())
	}
	go func() {
		defer close(p.read)
		p.follow(lines, failed)
		_ = lines.Close() // it is read to its end
	}()
	go func() {
		<-p.worker.done
		failed(fmt.Errorf("a process of graphile-worker ended: %w", errors.Join(p.err, errors.New(p.tail()))))
	}()
	return p, nil
}

// follow reads what the process tells until it is gone.
func (p *graphileProcess) follow(lines io.Reader, failed context.CancelCauseFunc) {
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		if scanner.Text() == "ready" {
			close(p.ready)
			continue
		}
		n, err := strconv.ParseInt(scanner.Text(), 10, 64)
		if err != nil {
			failed(fmt.Errorf("a process of graphile-worker said %q", scanner.Text()))
			return
		}
		p.done.Store(n)
	}
}

// begin tells the process to work.
func (p *graphileProcess) begin() error {
	_, err := io.WriteString(p.input, "go\n")
	return err
}

// stop ends the process in the orderly way.
func (p *graphileProcess) stop() error {
	if err := p.input.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return errors.Join(err, p.worker.stop())
	}
	timer := time.NewTimer(workerStop)
	defer timer.Stop()
	select {
	case <-p.read:
		<-p.worker.done
		return nil
	case <-timer.C:
		return errors.Join(errors.New("a process of graphile-worker did not end when it was told to"), p.worker.stop())
	}
}
