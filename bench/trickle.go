package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
)

// trickle enqueues n jobs one after the other, each in a transaction, pause apart. It returns the
// moment before each commit was sent.
func (d *database) trickle(ctx context.Context, pause time.Duration, n int,
	enqueue func(tx pgx.Tx, i int) error,
) ([]time.Time, error) {
	committed := make([]time.Time, n)
	err := every(ctx, pause, n, func(i int) error {
		err := inTx(ctx, d.pool, func(tx pgx.Tx) error {
			err := enqueue(tx, i)
			committed[i] = time.Now()
			return err
		})
		if err != nil {
			return fmt.Errorf("enqueue job %d: %w", i, err)
		}
		return nil
	})
	return committed, err
}

// beginnings collects when the work on each of some numbered jobs began for the first time.
type beginnings struct {
	epoch time.Time
	// at is counted from epoch, in nanoseconds; 0: not begun.
	at []atomic.Int64
}

func newBeginnings(n int) *beginnings {
	return &beginnings{epoch: time.Now(), at: make([]atomic.Int64, n)}
}

// mark says that the work on a job begins now.
func (b *beginnings) mark(number int) { b.at[number].CompareAndSwap(0, int64(time.Since(b.epoch))) }

// after waits until all have begun and returns how long after its commit each did, in milliseconds,
// but for the first warmUp.
func (b *beginnings) after(ctx context.Context, committed []time.Time, warmUp int) ([]float64, error) {
	begun := 0
	err := await(ctx, time.Millisecond, func(context.Context) (bool, int64, error) {
		for begun < len(b.at) && b.at[begun].Load() != 0 {
			begun++
		}
		return begun == len(b.at), int64(begun), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait until all jobs have begun: %w", err)
	}
	delays := make([]float64, 0, len(committed))
	for i := warmUp; i < len(committed); i++ {
		delays = append(delays, milliseconds(time.Duration(b.at[i].Load())-committed[i].Sub(b.epoch)))
	}
	return delays, nil
}

// within waits until all have begun, but no longer than patience, and returns how long after its
// commit each did, in milliseconds, but for the first warmUp. A job that has not begun by then
// counts as if it began then: missing is how many those are.
func (b *beginnings) within(ctx context.Context, committed []time.Time, warmUp int,
	patience time.Duration,
) (delays []float64, missing int, err error) {
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for !b.allBegun() && waiting.Err() == nil {
		pause(waiting, time.Millisecond)
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	now := int64(time.Since(b.epoch))
	for i := warmUp; i < len(committed); i++ {
		at := b.at[i].Load()
		if at == 0 {
			at = now
			missing++
		}
		delays = append(delays, milliseconds(time.Duration(at)-committed[i].Sub(b.epoch)))
	}
	return delays, missing, nil
}

func (b *beginnings) allBegun() bool {
	for i := range b.at {
		if b.at[i].Load() == 0 {
			return false
		}
	}
	return true
}

// sayDelays tells about delays in milliseconds.
func (b *bench) sayDelays(name string, delays []float64) {
	b.say("  %s: p50 %s ms, p99 %s ms, max %s ms", name, report.Figure(percentile(delays, 50)),
		report.Figure(percentile(delays, 99)), report.Figure(percentile(delays, 100)))
}
