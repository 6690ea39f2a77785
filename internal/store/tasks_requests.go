package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// NewTask asks for a task.
type NewTask struct {
	Type    string
	Payload json.RawMessage
	// ScheduledAt is when it is due; nil is now.
	ScheduledAt *time.Time
}

// EnqueueTasks asks for tasks, up to limit in a statement, and returns their ids in the order of
// the tasks.
func EnqueueTasks(ctx context.Context, q Querier, tasks []NewTask, limit int) ([]int64, error) {
	const stmt = `
SELECT task_id FROM queues.enqueue_tasks(@types, @payloads::text[]::jsonb[], @scheduled_ats) ORDER BY ordinal`
	ids := make([]int64, 0, len(tasks))
	for part := range slices.Chunk(tasks, limit) {
		types, payloads := make([]string, len(part)), make([]string, len(part))
		var due []*time.Time
		for i, t := range part {
			types[i], payloads[i] = t.Type, string(t.Payload)
			due = setPointerAt(due, i, len(part), t.ScheduledAt)
		}
		text, args := traced(ctx, stmt, Args{"types": types, "payloads": payloads, "scheduled_ats": due})
		some, err := Collect(ctx, q, pgx.RowTo[int64], text, args)
		if err != nil {
			return nil, Wrap("enqueue tasks", err)
		}
		ids = append(ids, some...)
	}
	return ids, nil
}

// TaskChange says what to do with the tasks of a type. The zero value of each field leaves that as
// it is.
type TaskChange struct {
	// Paused pauses them, or ends the pause.
	Paused *bool
	// Cap bounds how many of them are leased at a time; 0 removes the bound.
	Cap *int
}

// ChangedTasks is what holds tasks of a type back after a change.
type ChangedTasks struct {
	// Type is the type, or models.AllTasks.
	Type string `json:"type"`
	// Changed is false when the request changed nothing.
	Changed bool `json:"changed"`
	// PausedAt and MaxInFlight are those of models.TaskLimit.
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	MaxInFlight *int       `json:"max_in_flight,omitempty"`
}

// LimitTasks pauses, resumes or caps the tasks of a type, or all tasks (models.AllTasks): no
// dequeue that begins after its commit hands out more than that leaves. Tasks that are leased
// already are finished, also those above a lowered cap. It returns ErrInvalid for what is no type
// and for a negative cap.
func LimitTasks(ctx context.Context, q Querier, taskType string, c TaskChange) (ChangedTasks, error) {
	const stmt = `SELECT changed, paused_at, max_in_flight FROM queues.limit_tasks($1, $2, $3)`
	out := ChangedTasks{Type: taskType}
	err := q.QueryRow(ctx, stmt, taskType, c.Paused, c.Cap).Scan(&out.Changed, &out.PausedAt, &out.MaxInFlight)
	return out, Wrap("change what holds tasks back", err)
}

// TaskLimits lists the pauses and caps of tasks, that of all tasks first.
func TaskLimits(ctx context.Context, q Querier) ([]models.TaskLimit, error) {
	const stmt = `
SELECT task_type, paused_at, max_in_flight, updated_at FROM queues.task_limit WHERE paused_at IS NOT NULL OR max_in_flight IS NOT NULL ORDER BY task_type`
	list, err := Collect(ctx, q, pgx.RowToStructByPos[models.TaskLimit], stmt)
	return list, Wrap("list pauses and caps of tasks", err)
}
