package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ErrInvalidTaskType: a type is empty, longer than models.MaxTaskTypeBytes, or has other characters
// than small letters, digits and '_' after a small letter.
var ErrInvalidTaskType = failure.New(failure.Invalid,
	"a task's type must be a small letter and then small letters, digits or '_', 63 at most")

// TaskPayload is what a task is about: a struct whose JSON tags name its fields. For a db_function
// one of them is "db_function", for the channels "before_handler" and so on; docs/tasks.md lists
// them.
type TaskPayload interface {
	// TaskType names the processor; it must not depend on the value.
	TaskType() string
}

// RawTask is a payload for callers that have no struct for it.
type RawTask struct {
	Type string
	// Data is a JSON object; empty is {}.
	Data json.RawMessage
}

// TaskType implements TaskPayload.
func (p RawTask) TaskType() string { return p.Type }

// MarshalJSON implements json.Marshaler.
func (p RawTask) MarshalJSON() ([]byte, error) { return RawPayload{Data: p.Data}.MarshalJSON() }

// TaskOptions say how a task is enqueued. The zero value is a task that is due now.
type TaskOptions struct {
	// ScheduledAt is when the task is due; the zero time is now. A time in the past puts it before
	// the tasks that are due since.
	ScheduledAt time.Time
}

// NewTask is one task for EnqueueTasks.
type NewTask struct {
	Payload TaskPayload
	Options TaskOptions
}

// EnqueuedTask is a task that was enqueued.
type EnqueuedTask struct {
	ID int64
}

// EnqueueTask enqueues a task, in the transaction q. Every call makes a task: a
// business process that must begin once has a kickoff function that is idempotent (docs/tasks.md).
//
// Errors: ErrInvalidTaskType, ErrPayloadTooLarge, ErrPayloadInvalid, ErrInvalidTime, ErrNoQuerier,
// ErrNoTransaction (a GORM handle outside of a transaction). Each is found before anything is
// written.
func EnqueueTask(ctx context.Context, q Querier, p TaskPayload, o TaskOptions) (EnqueuedTask, error) {
	row, err := newTaskRow(NewTask{Payload: p, Options: o})
	if err != nil {
		return EnqueuedTask{}, err
	}
	if err := check(q); err != nil {
		return EnqueuedTask{}, err
	}
	done, err := enqueueTasks(ctx, q, []store.NewTask{row}, 1)
	if err != nil {
		return EnqueuedTask{}, err
	}
	return done[0], nil
}

// EnqueueTasks is EnqueueTask for many tasks, in one statement per MaxMany. What it returns is in the
// order of the tasks. One task that is wrong refuses all; the error names its position.
func EnqueueTasks(ctx context.Context, q Querier, tasks []NewTask) ([]EnqueuedTask, error) {
	rows := make([]store.NewTask, len(tasks))
	for i, t := range tasks {
		row, err := newTaskRow(t)
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
		rows[i] = row
	}
	if err := check(q); err != nil {
		return nil, err
	}
	return enqueueTasks(ctx, q, rows, MaxMany)
}

// enqueueTasks enqueues tasks, and logs them.
func enqueueTasks(ctx context.Context, q Querier, rows []store.NewTask, batch int) ([]EnqueuedTask, error) {
	ids, err := store.EnqueueTasks(ctx, q, rows, batch)
	if err != nil {
		return nil, err
	}
	done, log := make([]EnqueuedTask, len(ids)), logOf(ctx)
	for i, row := range rows {
		id := ids[i]
		done[i].ID = id
		if log != nil {
			logEnqueued(ctx, log, "tasks", "", row.Type, strconv.FormatInt(id, 10), "", Enqueued)
		}
	}
	return done, nil
}

// CheckTask returns the error that EnqueueTask would return for a task before it reaches the
// database. It enqueues nothing.
func CheckTask(p TaskPayload, o TaskOptions) error {
	_, err := newTaskRow(NewTask{Payload: p, Options: o})
	return err
}

// newTaskRow checks a task and writes its payload.
func newTaskRow(t NewTask) (store.NewTask, error) {
	if store.IsNil(t.Payload) {
		return store.NewTask{}, fmt.Errorf("%w: it is nil: give a struct with a TaskType, or a queue.RawTask",
			ErrPayloadInvalid)
	}
	taskType := t.Payload.TaskType()
	at := t.Options.ScheduledAt
	if !models.ValidTaskType(taskType) {
		return store.NewTask{}, fmt.Errorf("%w, not %q", ErrInvalidTaskType, taskType)
	}
	if err := checkTime(at); err != nil {
		return store.NewTask{}, err
	}
	raw, err := json.Marshal(t.Payload)
	if err != nil {
		return store.NewTask{}, fmt.Errorf("%w: %w", ErrPayloadInvalid, err)
	}
	if err := payload.CheckTask(raw); err != nil {
		return store.NewTask{}, err
	}
	return store.NewTask{Type: taskType, Payload: raw, ScheduledAt: store.TimeOrNil(at)}, nil
}
