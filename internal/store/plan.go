package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// planByKey makes the planner look rows up by their keys, until the transaction ends. Every hot
// statement names its rows by key, a batch at a time, so reading through an index is right whatever
// the table's size. The planner cannot know that: it makes a prepared statement's plan once, for
// the table as it is then, and a plan that was made while the table was small scans all of it when
// it has grown, until the next ANALYZE. Left to itself it also plans a statement anew each time it
// is for a few rows, which takes longer than to execute it. None of these plans is worth compiling,
// which takes a second or two: it would be done whenever a plan scans a table of one row, because a
// scan that is switched off counts as very expensive.
const planByKey = `SELECT ` + byKeySettings

// byKeySettings is the list of planByKey.
const byKeySettings = `set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// planWaiting is planByKey for a statement that waits for locks for so many milliseconds at most.
const planWaiting = planByKey + `, set_config('lock_timeout', $1, true)`

// planAlone is planByKey for a batch without a transaction around it, whose statements get the time
// that Begin gives.
const planAlone = planByKey + `, set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true), ` +
	noTransactionTimeout

// PlanByKey has the statements that follow in the transaction planned as the worker's are.
func PlanByKey(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, planByKey)
	return Wrap("set the planner", err)
}

// planFreely takes planByKey back. With null for a value a setting is what it is when the session
// begins.
const planFreely = `
SELECT set_config('enable_hashjoin', $1, true), set_config('enable_mergejoin', $1, true), set_config('enable_seqscan', $1, true), set_config('jit', $1, true),
       set_config('plan_cache_mode', $1, true)`

// PlanFreely takes that back, to what the session has, for statements that are not Daybook's.
func PlanFreely(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, planFreely, nil)
	return Wrap("reset the planner", err)
}

// batcher sends a batch: a pool (which makes it one transaction), a connection or a transaction.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// lastRows sends a batch in one round trip and returns the rows of its last statement.
func lastRows[T any](ctx context.Context, q batcher, batch *pgx.Batch, scan pgx.RowToFunc[T]) (_ []T, err error) {
	results := q.SendBatch(ctx, batch)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
		err = leaveSpoilt(q, err)
	}()
	for range batch.Len() - 1 {
		if _, err := results.Exec(); err != nil {
			return nil, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// sendAll sends a batch of plannedBatch in one round trip. What reads its rows is queued with its
// statements.
func sendAll(ctx context.Context, q batcher, batch *pgx.Batch) error {
	return leaveSpoilt(q, q.SendBatch(ctx, batch).Close())
}

// byKey runs one statement with its plan by key, in one round trip and one transaction.
func byKey[T any](ctx context.Context, q batcher, scan pgx.RowToFunc[T], stmt string, args ...any) ([]T, error) {
	return planned(ctx, q, "", scan, stmt, args...)
}

// alongIndex goes behind planByKey for statements that read a few rows in an index's order: a
// bitmap would read all of them.
const alongIndex = `, set_config('enable_bitmapscan', 'off', true)`

// inOrder is byKey for such statements.
func inOrder[T any](ctx context.Context, q batcher, scan pgx.RowToFunc[T], stmt string, args ...any) ([]T, error) {
	return planned(ctx, q, alongIndex, scan, stmt, args...)
}

// planned runs one statement after another one that says how it is planned: by key, and what else
// there is.
func planned[T any](ctx context.Context, q batcher, more string, scan pgx.RowToFunc[T], stmt string,
	args ...any,
) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	for try := 0; ; try++ {
		batch := plannedBatch(q, more)
		batch.Queue(stmt, args...)
		rows, err := lastRows(ctx, q, batch, scan)
		if _, inside := q.(pgx.Tx); try > 0 || inside || FaultOf(err) != Stale {
			return rows, err
		}
	}
}

// batchByKey returns a batch whose statements have their plans by key, and which is READ COMMITTED
// though no transaction is begun around it.
func batchByKey(q batcher) *pgx.Batch { return plannedBatch(q, "") }

func plannedBatch(q batcher, more string) *pgx.Batch {
	batch := &pgx.Batch{}
	if _, inside := q.(pgx.Tx); inside {
		batch.Queue(planByKey + more)
		return batch
	}
	batch.Queue(readCommitted)
	batch.Queue(planAlone + more)
	return batch
}
