package listing

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// TaskFilter says which tasks are meant. The zero value of each field means any.
type TaskFilter struct {
	// State is one of models.TaskSearches.
	State models.TaskState
	Type  string
	// Since and Until bound when the task was completed if State is TaskCompleted, when its last error was
	// noted if it is TaskFailed, and when it was enqueued otherwise: from Since on, before Until.
	Since, Until time.Time
}

// ListedTask is a task of a list, without its payload.
type ListedTask struct {
	ID          int64
	Type        string
	State       models.TaskState
	EnqueuedAt  time.Time
	ScheduledAt time.Time
	// Leases is how often it was handed out.
	Leases int
	// LeasedUntil is when its lease expires; nil: it is not leased.
	LeasedUntil *time.Time
	CompletedAt *time.Time
	LastError   string
}

// TaskPage is a part of a list of tasks.
type TaskPage struct {
	Tasks []ListedTask
	// Next is the cursor of the next part; empty: this is the last one.
	Next string
}

// foundTask is a task that a search finds, and its place in the order of the search.
type foundTask struct {
	id int64
	at time.Time
	// by is what the search is ordered by after at: the task's id, or that of its last error.
	by int64
}

// searches are the statements that find tasks, state by state: each returns their ids and places.
// They read no more of the history than they show, unless a type or a time is rare in it.
var searches = map[models.TaskState]string{
	"": `
SELECT t.task_id, 'epoch'::timestamptz, t.task_id
  FROM queues.task t
 WHERE t.task_id < @by AND t.task_id >= @floor AND (@type = '' OR t.task_type = @type) AND (@since::timestamptz IS NULL OR t.enqueued_at >= @since) AND (@until::timestamptz IS NULL OR t.enqueued_at < @until)
 ORDER BY t.task_id DESC
 LIMIT @limit`,
	models.TaskWaiting: `
SELECT t.task_id, 'epoch'::timestamptz, t.task_id
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE o.task_id < @by AND o.task_id >= @floor AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp()) AND o.scheduled_at > clock_timestamp()
   AND (@type = '' OR o.task_type = @type) AND (@since::timestamptz IS NULL OR t.enqueued_at >= @since) AND (@until::timestamptz IS NULL OR t.enqueued_at < @until)
 ORDER BY o.task_id DESC
 LIMIT @limit`,
	models.TaskReady: `
SELECT t.task_id, 'epoch'::timestamptz, t.task_id
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE o.task_id < @by AND o.task_id >= @floor AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp()) AND o.scheduled_at <= clock_timestamp()
   AND (@type = '' OR o.task_type = @type) AND (@since::timestamptz IS NULL OR t.enqueued_at >= @since) AND (@until::timestamptz IS NULL OR t.enqueued_at < @until)
 ORDER BY o.task_id DESC
 LIMIT @limit`,
	models.TaskLeased: `
SELECT t.task_id, 'epoch'::timestamptz, t.task_id
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE o.task_id < @by AND o.task_id >= @floor AND o.leased_until > clock_timestamp()
   AND (@type = '' OR o.task_type = @type) AND (@since::timestamptz IS NULL OR t.enqueued_at >= @since) AND (@until::timestamptz IS NULL OR t.enqueued_at < @until)
 ORDER BY o.task_id DESC
 LIMIT @limit`,
	models.TaskStuck: `
SELECT t.task_id, 'epoch'::timestamptz, t.task_id
  FROM queues.stuck_tasks s JOIN queues.task t USING (task_id)
 WHERE s.task_id < @by AND s.task_id >= @floor AND (@type = '' OR t.task_type = @type) AND (@since::timestamptz IS NULL OR t.enqueued_at >= @since) AND (@until::timestamptz IS NULL OR t.enqueued_at < @until)
 ORDER BY s.task_id DESC
 LIMIT @limit`,
	models.TaskFailed: `
SELECT f.task_id, 'epoch'::timestamptz, f.last_error_id
  FROM queues.failed_tasks f
 WHERE f.last_error_id < @by AND f.last_error_id >= @floor AND (@type = '' OR f.task_type = @type) AND (@since::timestamptz IS NULL OR f.last_error_at >= @since) AND (@until::timestamptz IS NULL OR f.last_error_at < @until)
 ORDER BY f.last_error_id DESC
 LIMIT @limit`,
	models.TaskCompleted: `
SELECT c.task_id, c.completed_at, c.task_id
  FROM queues.task_completed c
 WHERE (c.completed_at, c.task_id) < (coalesce(@at::timestamptz, 'infinity'), @by)
   AND (c.completed_at, c.task_id) >= (coalesce(@floor_at::timestamptz, '-infinity'), @floor) AND (@type = '' OR EXISTS (SELECT FROM queues.task t WHERE t.task_id = c.task_id AND t.task_type = @type))
   AND (@since::timestamptz IS NULL OR c.completed_at >= @since) AND (@until::timestamptz IS NULL OR c.completed_at < @until)
 ORDER BY c.completed_at DESC, c.task_id DESC
 LIMIT @limit`,
}

// Tasks lists tasks: completed ones by when they were completed, failed ones by their last error,
// all others by when they were enqueued, the last one first. limit is DefaultLimit when it is 0.
// cursor is a page's Next, for the same filter; empty: from the beginning. A cursor that is not
// one, and a state that is none of models.TaskSearches, are ErrInvalid.
func (l *Listing) Tasks(ctx context.Context, f TaskFilter, limit int, cursor string) (TaskPage, error) {
	from, err := readTaskCursor(cursor, f.State)
	if err != nil {
		return TaskPage{Tasks: []ListedTask{}}, err
	}
	return l.searchTasks(ctx, f, cmp.Or(limit, store.DefaultLimit), from, foundTask{})
}

// searchTasks reads a page of tasks from behind a place on, but none beyond floor.
func (l *Listing) searchTasks(ctx context.Context, f TaskFilter, limit int, from, floor foundTask) (TaskPage, error) {
	page := TaskPage{Tasks: []ListedTask{}}
	stmt, known := searches[f.State]
	if !known {
		return page, store.Invalid("tasks are not searched by the state %q, but by %s", f.State,
			phrase.Or(models.TaskSearches()))
	}
	a := store.Args{
		"type": f.Type, "since": store.TimeOrNil(f.Since), "until": store.TimeOrNil(f.Until), "limit": limit + 1,
		"at": store.TimeOrNil(from.at), "by": from.by,
		"floor": floor.by,
	}
	if f.State == models.TaskCompleted {
		a["floor_at"] = store.TimeOrNil(floor.at)
	}
	found, err := store.Collect(ctx, l.pool, scanFoundTask, stmt, a)
	if err != nil {
		return page, store.Wrap("search tasks", err)
	}
	if len(found) > limit {
		found = found[:limit]
		page.Next = writeTaskCursor(f.State, found[limit-1])
	}
	ids := make([]int64, len(found))
	for i, t := range found {
		ids[i] = t.id
	}
	page.Tasks, err = l.tasks(ctx, ids)
	return page, err
}

func scanFoundTask(row pgx.CollectableRow) (t foundTask, err error) {
	err = row.Scan(&t.id, &t.at, &t.by)
	return t, err
}

// tasks reads tasks in the order of their ids' list. One that was removed meanwhile is left out.
func (l *Listing) tasks(ctx context.Context, ids []int64) ([]ListedTask, error) {
	const stmt = `
SELECT t.task_id, t.task_type, t.enqueued_at, t.scheduled_at,
       CASE WHEN c.task_id IS NOT NULL THEN 'completed' WHEN o.task_id IS NULL THEN 'unreachable' WHEN o.leased_until > clock_timestamp() THEN 'leased'
            WHEN o.scheduled_at > clock_timestamp() THEN 'waiting' ELSE 'ready' END,
       CASE WHEN c.task_id IS NULL THEN coalesce(o.leases, 0) ELSE (SELECT count(*) FROM queues.task_lease l WHERE l.task_id = t.task_id AND l.renews IS NULL)::integer END,
       CASE WHEN o.leased_until > clock_timestamp() THEN o.leased_until END, c.completed_at,
       coalesce((SELECT e.error_message FROM queues.error e WHERE e.task_id = t.task_id ORDER BY e.error_id DESC LIMIT 1), '')
  FROM unnest($1::bigint[]) WITH ORDINALITY AS x (id, n)
  JOIN queues.task t ON t.task_id = x.id
  LEFT JOIN queues.open_task o ON o.task_id = x.id
  LEFT JOIN queues.task_completed c ON c.task_id = x.id
 ORDER BY x.n`
	list, err := store.Collect(ctx, l.pool, func(row pgx.CollectableRow) (t ListedTask, err error) {
		err = row.Scan(&t.ID, &t.Type, &t.EnqueuedAt, &t.ScheduledAt, &t.State, &t.Leases, &t.LeasedUntil, &t.CompletedAt,
			&t.LastError)
		return t, err
	}, stmt, ids)
	return list, store.Wrap("read tasks", err)
}

// Task reads a task; ErrTaskNotFound when there is none with the id.
func (l *Listing) Task(ctx context.Context, id int64) (TaskDetail, error) {
	var d TaskDetail
	list, err := l.tasks(ctx, []int64{id})
	if err == nil && len(list) == 0 {
		err = noTask(id)
	}
	if err != nil {
		return d, err
	}
	d.ListedTask = list[0]
	const stmt = `
SELECT t.payload, (SELECT count(*) FROM queues.error e WHERE e.task_id = t.task_id), coalesce(o.worker, ''), coalesce(s.reason, ''), coalesce(t.traceparent, '')
  FROM queues.task t
  LEFT JOIN queues.open_task o ON o.task_id = t.task_id
  LEFT JOIN queues.stuck_tasks s ON s.task_id = t.task_id
 WHERE t.task_id = $1`
	err = l.pool.QueryRow(ctx, stmt, id).Scan(&d.Payload, &d.Errors, &d.Worker, &d.Stuck, &d.TraceParent)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, noTask(id)
	}
	return d, store.Wrap("read the task", err)
}

func noTask(id int64) error {
	return fmt.Errorf("%w: %d; check the id, or look in the archive of removed tasks", store.ErrTaskNotFound, id)
}

// TaskDetail is a task with all that is known of it but its history.
type TaskDetail struct {
	ListedTask
	Payload json.RawMessage
	// Errors counts those that were noted.
	Errors int64
	// Worker has it leased; empty: none of Daybook's workers has.
	Worker string
	// Stuck says why it needs a person; empty: it does not.
	Stuck string
	// TraceParent is the trace of what asked for it; empty: it belonged to none.
	TraceParent string
}

// writeTaskCursor says where a list goes on after a task.
func writeTaskCursor(state models.TaskState, t foundTask) string {
	place := fmt.Sprintf("%s. %d %d", state, t.at.UnixMicro(), t.by)
	return base64.RawURLEncoding.EncodeToString([]byte(place))
}

// readTaskCursor returns the place behind which a list begins.
func readTaskCursor(cursor string, state models.TaskState) (foundTask, error) {
	if cursor == "" {
		return foundTask{by: math.MaxInt64}, nil
	}
	var micro int64
	var t foundTask
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), string(state)+". %d %d", &micro, &t.by)
	}
	if err != nil {
		return t, store.Invalid("the cursor is not one of this list: leave it out to begin anew")
	}
	t.at = time.UnixMicro(micro)
	return t, nil
}
