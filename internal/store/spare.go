package store

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/store/hosts"
)

const (
	// spareAfter is how long the renewal of leases waits for a connection of the pool.
	spareAfter = 500 * time.Millisecond
	// spareLimit is how long a connection of its own may take to be there. Other renewals wait
	// meanwhile.
	spareLimit = 3 * time.Second
)

// keeping runs f, which renews leases or keeps that waiting, on the pool. While all of the pool's
// connections are in use it opens one of its own, one at a time, and crowded is true: handlers may
// use the pool as well, and hold its connections for longer than a lease lasts. So it does first when
// the last try on the pool had no answer in its time: a server that has frozen, or has gone without a
// word, leaves a pool full of connections that carry nothing, and each would cost a try.
func (b *base) keeping(ctx context.Context, f func(q batcher) error) (crowded bool, err error) {
	if b.silent.Load() && b.breakSilence(ctx, f) == nil {
		return true, nil
	}
	defer func() { b.silent.Store(errors.Is(err, context.DeadlineExceeded)) }()
	// One that is being made has its place in the pool until it is there, or is given up, which may
	// take minutes.
	if s := b.pool.Stat(); s.AcquiredConns()+s.ConstructingConns() < s.MaxConns() {
		return false, f(b.pool)
	}
	waiting, cancel := context.WithTimeout(ctx, spareAfter)
	conn, err := b.pool.Acquire(waiting)
	cancel()
	if err == nil {
		defer conn.Release()
		return false, f(conn)
	}
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return false, err
	}
	return true, b.onOwn(ctx, spareLimit, f)
}

// breakSilence runs f on a connection of its own, in half of the time that there is: the rest is for
// the pool. If it answers, the pool's connections are closed: the idle ones now, the others when they
// are returned.
func (b *base) breakSilence(ctx context.Context, f func(q batcher) error) error {
	limit := 2 * spareLimit
	if until, ok := ctx.Deadline(); ok {
		limit = time.Until(until)
	}
	ctx, cancel := context.WithTimeout(ctx, limit/2)
	defer cancel()
	err := b.onOwn(ctx, limit/2, f)
	if err == nil && b.silent.Swap(false) {
		b.pool.Reset()
	}
	return err
}

// onOwn runs f on a connection of its own, which may take so long to be there.
func (b *base) onOwn(ctx context.Context, limit time.Duration, f func(q batcher) error) (err error) {
	b.spare.Lock()
	defer b.spare.Unlock()
	connecting, cancel := context.WithTimeout(ctx, limit)
	own, err := hosts.Connect(connecting, b.pool.Config())
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close(context.WithoutCancel(ctx))) }()
	return f(own)
}

// kept is keeping for a statement that has rows.
func kept[T any](ctx context.Context, b *base, ask func(q batcher) ([]T, error)) (rows []T, err error) {
	_, err = b.keeping(ctx, func(q batcher) (err error) {
		rows, err = ask(q)
		return err
	})
	return rows, err
}
