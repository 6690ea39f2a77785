package listing

import (
	"cmp"
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// FoundTasks is a page of a search for tasks.
type FoundTasks struct {
	TaskPage
	// Searched is as that of FoundJobs: by when tasks were enqueued, were completed, or had their
	// last error.
	Searched *time.Time
}

// Where a search for tasks stops: MaxScan places behind the place where it begins, among the rows
// in whose order it is. Each returns when that was, and the place.
const (
	floorOfTasks = `
SELECT x.id, (SELECT t.enqueued_at FROM queues.task t WHERE t.task_id = x.id), x.id
  FROM (SELECT t.task_id AS id FROM queues.task t WHERE t.task_id < $1 ORDER BY t.task_id DESC OFFSET $2 LIMIT 1) x`
	floorOfOpenTasks = `
SELECT x.id, (SELECT t.enqueued_at FROM queues.task t WHERE t.task_id = x.id), x.id
  FROM (SELECT o.task_id AS id FROM queues.open_task o WHERE o.task_id < $1 ORDER BY o.task_id DESC OFFSET $2 LIMIT 1) x`
	floorOfFailedTasks = `
SELECT e.task_id, e.created_at, e.error_id FROM queues.error e WHERE e.error_id < $1 ORDER BY e.error_id DESC OFFSET $2 LIMIT 1`
	floorOfCompletedTasks = `
SELECT c.task_id, c.completed_at, c.task_id
  FROM queues.task_completed c
 WHERE (c.completed_at, c.task_id) < (coalesce($3::timestamptz, 'infinity'), $1)
 ORDER BY c.completed_at DESC, c.task_id DESC
OFFSET $2 LIMIT 1`
)

// FindTasks is Tasks for a person who waits: it reads at most MaxScan rows for a page, and says how
// far back it has looked.
func (l *Listing) FindTasks(ctx context.Context, f TaskFilter, limit int, cursor string) (FoundTasks, error) {
	found := FoundTasks{TaskPage: TaskPage{Tasks: []ListedTask{}}}
	from, err := readTaskCursor(cursor, f.State)
	if err != nil {
		return found, err
	}
	args := []any{from.by, l.scan - 1}
	var stmt string
	switch f.State {
	case "":
		stmt = floorOfTasks
	case models.TaskFailed:
		stmt = floorOfFailedTasks
	case models.TaskCompleted:
		stmt, args = floorOfCompletedTasks, append(args, store.TimeOrNil(from.at))
	default:
		stmt = floorOfOpenTasks
	}
	var floor foundTask
	bounded := stmt == floorOfOpenTasks || f.Type != "" || !f.Since.IsZero() || !f.Until.IsZero()
	if bounded {
		rows, err := store.Collect(ctx, l.pool, scanFoundTask, stmt, args...)
		if err != nil {
			return found, store.Wrap("look how far a search goes", err)
		}
		if bounded = len(rows) > 0; bounded {
			floor = rows[0]
		}
	}
	found.TaskPage, err = l.searchTasks(ctx, f, cmp.Or(limit, store.DefaultLimit), from, floor)
	if err == nil && bounded && found.Next == "" {
		at := floor.at
		found.Next, found.Searched = writeTaskCursor(f.State, floor), &at
	}
	return found, err
}
