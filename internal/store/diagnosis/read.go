package diagnosis

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Most is how many rows a figure is made of at most.
const Most = 10000

// careful gives a transaction that only reads two seconds for each statement, and one of them for
// each lock: a table that another transaction has locked is reported, not waited for. The planner
// expects few rows of a partial index, and would read and sort all of them: it may only read in the
// index's order, which ends after Most. A statement for one organization is planned for that one,
// as those of ReadSnapshot are.
const careful = `SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = '2s'; SET LOCAL lock_timeout = '1s'; SET LOCAL jit = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL search_path = pg_catalog, pg_temp`

// Within is Read within a transaction, which is as it was afterwards.
func Within(ctx context.Context, tx pgx.Tx, f func(tx pgx.Tx)) error {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err = savepoint.Exec(ctx, careful); err == nil {
		f(savepoint)
	}
	return errors.Join(err, savepoint.Rollback(ctx))
}

// Read runs f in a transaction that only reads, and in which no statement takes longer than two
// seconds.
func Read(ctx context.Context, db store.Beginner, f func(tx pgx.Tx) error) error {
	return store.Begin(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, careful); err != nil {
			return err
		}
		return f(tx)
	})
}
