package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// tryLock tries for the migration lock, which the session then holds until it ends.
const tryLock = `SELECT pg_try_advisory_lock($1)`

// lockPoll is what a session pauses between two tries for the migration lock.
const lockPoll = 100 * time.Millisecond

// takeLock tries for the migration lock until try has got it. A statement that waited for it would
// hold a snapshot. CREATE INDEX CONCURRENTLY in the session that has the lock waits for such
// snapshots, and PostgreSQL would end one of the two as the victim of a deadlock.
func takeLock(ctx context.Context, try func(got *bool) error) error {
	for {
		var got bool
		if err := try(&got); err != nil {
			return fmt.Errorf("take the migration lock: %w", err)
		}
		if got {
			return nil
		}
		if err := pause(ctx, lockPoll); err != nil {
			return err
		}
	}
}

// How often a migration tries to get its locks beside workers, and what it pauses.
const (
	lockTries = 60
	lockPause = time.Second

	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// limitLocks has a migration give a lock up before PostgreSQL looks for deadlocks: else a transaction
// of the application that has one of its tables, and waits for the other, might be ended for it.
const limitLocks = `
SELECT set_config('lock_timeout', greatest(1, least(1000, setting::integer / 2))::text, false) FROM pg_catalog.pg_settings WHERE name = 'deadlock_timeout'`

// givingWay runs a step, which is one transaction, beside workers. Whatever waits for a table waits
// behind the lock that the step asks for, so it asks for a short time, and again later.
func givingWay(ctx context.Context, db *sql.DB, step func() error) error {
	if _, err := db.ExecContext(ctx, limitLocks); err != nil {
		return fmt.Errorf("set how long to wait for a lock: %w", err)
	}
	for try := 1; ; try++ {
		err := step()
		if err == nil {
			_, err = db.ExecContext(ctx, `SET lock_timeout = 0`)
			return err
		}
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || refused.Code != lockNotAvailable && refused.Code != deadlockDetected || try == lockTries {
			return err
		}
		if err := pause(ctx, lockPause); err != nil {
			return err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
