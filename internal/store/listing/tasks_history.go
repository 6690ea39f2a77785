package listing

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// TaskEvent is a fact of a task.
type TaskEvent struct {
	At time.Time
	// Event is "enqueued", "leased", "renewed", "failed" (an error was noted) or "completed".
	Event string
	// LeaseID and ExpiresAt are those of a lease or of its renewal; nil otherwise.
	LeaseID   *int64
	ExpiresAt *time.Time
	// Error is what was noted.
	Error string

	// rank and id order facts of the same moment.
	rank int
	id   int64
}

// TaskHistory is a page of the facts of a task, the newest first.
type TaskHistory struct {
	TaskID int64
	Events []TaskEvent
	// Next is the cursor of the next page, with older facts; empty: this is the last one.
	Next string
}

// TaskHistory reads a page of the facts of a task; ErrTaskNotFound when there is none with the id.
// limit is DefaultLimit when it is 0. cursor is a page's Next; empty: the newest facts. A cursor
// that is not one is ErrInvalid.
func (l *Listing) TaskHistory(ctx context.Context, id int64, limit int, cursor string) (TaskHistory, error) {
	const stmt = `
SELECT x.at, x.event, x.rank, x.id, x.expires_at, coalesce(x.message, '')
  FROM (SELECT t.enqueued_at AS at, 'enqueued' AS event, 0 AS rank, t.task_id AS id, NULL::timestamptz AS expires_at, NULL::text AS message FROM queues.task t WHERE t.task_id = @task
        UNION ALL
        SELECT l.leased_at, CASE WHEN l.renews IS NULL THEN 'leased' ELSE 'renewed' END, 1, l.task_lease_id, l.expires_at, NULL FROM queues.task_lease l WHERE l.task_id = @task
        UNION ALL
        SELECT e.created_at, 'failed', 2, e.error_id, NULL, e.error_message FROM queues.error e WHERE e.task_id = @task
        UNION ALL
        SELECT c.completed_at, 'completed', 3, c.task_id, NULL, NULL FROM queues.task_completed c WHERE c.task_id = @task) x
 WHERE @at::timestamptz IS NULL OR (x.at, x.rank, x.id) < (@at, @rank, @id)
 ORDER BY x.at DESC, x.rank DESC, x.id DESC
 LIMIT @limit`
	h := TaskHistory{TaskID: id, Events: []TaskEvent{}}
	limit = cmp.Or(limit, store.DefaultLimit)
	from, err := readEventCursor(cursor)
	if err != nil {
		return h, err
	}
	h.Events, err = store.Collect(ctx, l.pool, scanEvent, stmt,
		store.Args{"task": id, "at": store.TimeOrNil(from.At), "rank": from.rank, "id": from.id, "limit": limit + 1})
	if err != nil {
		return h, store.Wrap("read the task's history", err)
	}
	if len(h.Events) > limit {
		h.Events = h.Events[:limit]
		h.Next = writeEventCursor(h.Events[limit-1])
	}
	if len(h.Events) == 0 && cursor == "" {
		return h, noTask(id)
	}
	return h, nil
}

func scanEvent(row pgx.CollectableRow) (e TaskEvent, err error) {
	err = row.Scan(&e.At, &e.Event, &e.rank, &e.id, &e.ExpiresAt, &e.Error)
	if e.ExpiresAt != nil {
		e.LeaseID = &e.id
	}
	return e, err
}

func writeEventCursor(e TaskEvent) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %d", e.At.UnixMicro(), e.rank, e.id))
}

func readEventCursor(cursor string) (TaskEvent, error) {
	var e TaskEvent
	if cursor == "" {
		return e, nil
	}
	var micro int64
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%d %d %d", &micro, &e.rank, &e.id)
	}
	if err != nil {
		return e, store.Invalid("the cursor is not one of this history: leave it out to begin anew")
	}
	e.At = time.UnixMicro(micro)
	return e, nil
}
