package store

import (
	"context"
	"time"
)

// RunBulk changes the batches of an operation that are left, each in a transaction of its own, until there is none or ctx ends.
// Several callers share them; what is counted is what was committed.
func RunBulk(ctx context.Context, q Querier, id string) error {
	for {
		more, err := WorkBulkBatch(ctx, q, id)
		if err != nil || !more {
			return err
		}
	}
}

// WorkBulkBatch changes the next batch of an operation, and reports whether there was one.
func WorkBulkBatch(ctx context.Context, q Querier, id string) (more bool, err error) {
	return value[bool](ctx, q, "change a batch of jobs", `SELECT daybook.work_bulk_batch($1)`, id)
}

// OpenBulkOperations are operations that are not finished and that no process has worked on for a while. Where the database's clock was
// set back, some were worked on in the future.
func OpenBulkOperations(ctx context.Context, q Querier, idle time.Duration) ([]string, error) {
	const stmt = `
SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM daybook.bulk_operations
 WHERE finished_at IS NULL AND updated_at NOT BETWEEN clock_timestamp() - make_interval(secs => $1) AND clock_timestamp() + make_interval(secs => $1)`
	return value[[]string](ctx, q, "look for bulk operations", stmt, idle.Seconds())
}
