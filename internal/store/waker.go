package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/internal/store/wake"
	"github.com/daybook-dev/daybook/models/locks"
)

// Waker and Subscription are those of package wake.
type (
	Waker        = wake.Waker
	Subscription = wake.Subscription
)

// NewWaker returns a waker of the queue that connects, when a waiter first waits, as the pool does.
// worker is the process's name in its leases; empty: it takes none. interval is the pause between
// two scans while the waiters find work all the time. Close it.
func (b *base) NewWaker(worker string, interval time.Duration, log *slog.Logger) *Waker {
	config := cmp.Or(b.listening, b.pool).Config()
	return wake.NewWaker(wake.Queue{
		Name:    b.kind.Name,
		Worker:  worker,
		Address: func() (string, int) { return b.kind.wakeChannel(), b.kind.wakeKey() },
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			conn, err := hosts.Connect(ctx, config)
			if err != nil {
				return nil, errors.New(Explain(err))
			}
			return conn, nil
		},
		Wake: b.wake,
	}, interval, log)
}

// wake notifies the waiters of all processes, if there are any, as daybook.wake_job_queue does; but
// every role may do it. Should it fail, they look by themselves later.
func (b *base) wake(ctx context.Context) {
	const stmt = `
SELECT pg_notify($3, '')::text
 WHERE NOT pg_try_advisory_xact_lock_shared($1, $2) AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off'`
	_, _ = byKey(ctx, b.pool, pgx.RowTo[string], stmt, locks.Wakers, b.kind.wakeKey(), b.kind.wakeChannel())
}
