package inspect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// TaskFilter says which tasks are meant. The zero value of each field means any.
type TaskFilter struct {
	// State is one of models.TaskSearches.
	State models.TaskState
	Type  string
	// Since and Until bound when the task was completed if State is models.TaskCompleted, when its last
	// error was noted if it is models.TaskFailed, and when it was enqueued otherwise: from Since on,
	// before Until.
	Since, Until time.Time
}

// Task is a task without its payload.
type Task struct {
	ID          int64
	Type        string
	State       models.TaskState
	EnqueuedAt  time.Time
	ScheduledAt time.Time
	// Leases is how often it was handed out.
	Leases int
	// LeasedUntil is when its lease expires; nil: it is not leased.
	LeasedUntil *time.Time
	// CompletedAt is nil for a task that is not completed.
	CompletedAt *time.Time
	LastError   string
}

// TaskPage is a part of a list of tasks.
type TaskPage struct {
	Tasks []Task
	// Next is the cursor of the next page; empty: this is the last one.
	Next string
}

// Tasks lists tasks: completed ones by when they were completed, failed ones by their last error,
// all others by when they were enqueued, the last one first. Errors: ErrInvalid.
func (r *Reader) Tasks(ctx context.Context, f TaskFilter, p Page) (TaskPage, error) {
	limit, err := r.limit(p)
	if err != nil {
		return TaskPage{}, err
	}
	found, err := r.listing.Tasks(ctx, listing.TaskFilter{State: f.State, Type: f.Type, Since: f.Since, Until: f.Until},
		limit, p.Cursor)
	page := TaskPage{Next: found.Next, Tasks: make([]Task, len(found.Tasks))}
	for i := range found.Tasks {
		page.Tasks[i] = task(&found.Tasks[i])
	}
	return page, err
}

func task(t *listing.ListedTask) Task {
	return Task{
		ID: t.ID, Type: t.Type, State: t.State, EnqueuedAt: t.EnqueuedAt, ScheduledAt: t.ScheduledAt, Leases: t.Leases,
		LeasedUntil: t.LeasedUntil, CompletedAt: t.CompletedAt, LastError: t.LastError,
	}
}

// TaskDetail is a task with all that is known of it but its history.
type TaskDetail struct {
	Task
	Payload json.RawMessage
	// Errors counts those that were noted.
	Errors int64
	// Worker has it leased; empty: none of Daybook's workers has.
	Worker string
	// Stuck says why it needs a person; empty: it does not.
	Stuck string
}

// Task reads a task. Errors: ErrTaskNotFound.
func (r *Reader) Task(ctx context.Context, id int64) (TaskDetail, error) {
	if err := r.made(); err != nil {
		return TaskDetail{}, err
	}
	d, err := r.listing.Task(ctx, id)
	return TaskDetail{Task: task(&d.ListedTask), Payload: d.Payload, Errors: d.Errors, Worker: d.Worker, Stuck: d.Stuck},
		err
}

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
}

// TaskHistoryPage is a part of the history of a task.
type TaskHistoryPage struct {
	Events []TaskEvent
	// Next is the cursor of the next page, with older facts; empty: this is the last one.
	Next string
}

// TaskHistory lists what happened to a task, the newest first. Errors: ErrTaskNotFound, ErrInvalid.
func (r *Reader) TaskHistory(ctx context.Context, id int64, p Page) (TaskHistoryPage, error) {
	limit, err := r.limit(p)
	if err != nil {
		return TaskHistoryPage{}, err
	}
	found, err := r.listing.TaskHistory(ctx, id, limit, p.Cursor)
	page := TaskHistoryPage{Next: found.Next, Events: make([]TaskEvent, len(found.Events))}
	for i, e := range found.Events {
		page.Events[i] = TaskEvent{At: e.At, Event: e.Event, LeaseID: e.LeaseID, ExpiresAt: e.ExpiresAt, Error: e.Error}
	}
	return page, err
}
