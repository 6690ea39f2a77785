package answers

import (
	"time"

	"github.com/daybook-dev/daybook/internal/store/listing"
)

// Task is a task that is supervised in SQL.
type Task struct {
	ID          int64      `json:"id"`
	Type        string     `json:"type"`
	State       string     `json:"state" enum:"waiting,ready,leased,completed,unreachable" doc:"completed: whether it succeeded or failed; unreachable: it is open and no dequeue finds it"`
	EnqueuedAt  time.Time  `json:"enqueuedAt"`
	ScheduledAt time.Time  `json:"scheduledAt" doc:"From when on it is due"`
	Leases      int        `json:"leases" doc:"How often it was handed out"`
	LeasedUntil *time.Time `json:"leasedUntil,omitempty"`
	CompletedAt *time.Time `json:"completedAt,omitempty"`
	LastError   string     `json:"lastError,omitempty"`
}

func taskOf(t *listing.ListedTask) Task {
	return Task{
		ID: t.ID, Type: t.Type, State: string(t.State), EnqueuedAt: t.EnqueuedAt, ScheduledAt: t.ScheduledAt,
		Leases: t.Leases, LeasedUntil: t.LeasedUntil,
		CompletedAt: t.CompletedAt, LastError: t.LastError,
	}
}

// TaskList is a page of tasks.
type TaskList struct {
	Tasks      []Task `json:"tasks"`
	NextCursor string `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// TaskListOf makes the answer of a page of tasks.
func TaskListOf(p *listing.TaskPage) TaskList {
	return TaskList{Tasks: List(p.Tasks, taskOf), NextCursor: p.Next}
}

// TaskDetail is a task with all that is known of it but its history.
type TaskDetail struct {
	Task
	Payload Object `json:"payload"`
	Errors  int64  `json:"errors" doc:"How many were noted"`
	Worker  string `json:"worker,omitempty" doc:"Which of Daybook's workers has it now"`
	Stuck   string `json:"stuck,omitempty" doc:"Why it needs a person"`
	// TraceParent is as jobs have it.
	TraceParent string `json:"traceparent,omitempty" doc:"The trace of what asked for it, as W3C Trace Context writes it"`
}

// TaskDetailOf makes the answer of a task.
func TaskDetailOf(d *listing.TaskDetail) TaskDetail {
	return TaskDetail{
		Task: taskOf(&d.ListedTask), Payload: Object(d.Payload), Errors: d.Errors, Worker: d.Worker, Stuck: d.Stuck,
		TraceParent: d.TraceParent,
	}
}

// TaskEvent is a fact of a task.
type TaskEvent struct {
	At        time.Time  `json:"at"`
	Event     string     `json:"event" enum:"enqueued,leased,renewed,failed,completed" doc:"failed: an error was noted"`
	LeaseID   *int64     `json:"leaseId,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"When the lease expires, or expired"`
	Error     string     `json:"error,omitempty"`
}

// TaskHistory is a page of the facts of a task, the newest first.
type TaskHistory struct {
	History    []TaskEvent `json:"history"`
	NextCursor string      `json:"nextCursor,omitempty" doc:"For the next page, of older facts; absent: this is the last one"`
}

// TaskHistoryOf makes the answer of a page of the facts of a task.
func TaskHistoryOf(h *listing.TaskHistory) TaskHistory {
	return TaskHistory{NextCursor: h.Next, History: List(h.Events, func(e *listing.TaskEvent) TaskEvent {
		return TaskEvent{At: e.At, Event: e.Event, LeaseID: e.LeaseID, ExpiresAt: e.ExpiresAt, Error: e.Error}
	})}
}
