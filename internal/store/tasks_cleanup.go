package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// RemovedTask is a completed task with all its facts, as JSON.
type RemovedTask struct {
	ID    int64
	Facts json.RawMessage
}

// RemoveTasks removes up to limit tasks that were completed before a time, the oldest first, with all their facts, and returns them in the order of
// their ids. None: there is nothing left to remove, or another transaction is removing it. The caller writes them to an archive before it commits.
func RemoveTasks(ctx context.Context, tx pgx.Tx, before time.Time, limit int) ([]RemovedTask, error) {
	const stmt = `SELECT task_id, facts FROM queues.remove_completed_tasks($1, $2) ORDER BY task_id`
	all, err := Collect(ctx, tx, pgx.RowToStructByPos[RemovedTask], stmt, before, limit)
	return all, Wrap("remove completed tasks", err)
}
