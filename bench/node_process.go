package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// startNode starts a process of a peer that runs on node. What it tells goes to j.
func (b *bench) startNode(peers *nodePeers, program string, config nodeConfig, j *journal) (*queueProcess, error) {
	config.Name = b.unique()
	// A signal to this program does not reach it, which is told to end by its input.
	cmd := peers.command(context.Background(), program, config)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w, err := b.launch(config.Name, cmd, j)
	if err != nil {
		return nil, errors.Join(err, input.Close())
	}
	w.input = input
	return w, nil
}

// drained is how long it took until n jobs were done, and until the first began, both from the
// start of the workflow or of the peer's client.
type drained struct{ took, first time.Duration }

// drainNode has two processes of a program work n jobs that wait. Its clock runs from when both,
// which are started and loaded, are told to work until left says that no job is left.
func (b *bench) drainNode(ctx context.Context, d *database, peers *nodePeers, program string, config nodeConfig, n int,
	left string,
) (took drained, err error) {
	j := newJournal()
	config.DatabaseURL, config.Waits, config.Counts = d.url, true, true
	var processes []*queueProcess
	for range nodeProcesses {
		p, err := b.startNode(peers, program, config, j)
		if err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		processes = append(processes, p)
		if err := awaitReady(ctx, p); err != nil {
			return took, err
		}
	}
	began := time.Now()
	for _, p := range processes {
		if _, err := io.WriteString(p.input, "go\n"); err != nil {
			return took, err
		}
	}
	err = await(ctx, time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		for _, p := range processes {
			if err := p.ended(); err != nil {
				return false, 0, err
			}
		}
		all := j.done()
		if all < int64(n) {
			return false, all, nil
		}
		some, err := one[bool](ctx, d.pool, left)
		return !some, all, err
	})
	if err != nil {
		return took, err
	}
	took.took = time.Since(began)
	if all := j.done(); all != int64(n) {
		return took, fmt.Errorf("%d jobs were done %d times", n, all)
	}
	took.first = j.first().Sub(began)
	return took, nil
}
