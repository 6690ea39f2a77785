package models

import (
	"encoding/json"
	"time"
)

// MaxTaskTypeBytes is how long the type of a task may be.
const MaxTaskTypeBytes = 63

// ValidTaskType reports whether a text can be the type of a task: a small letter and then small letters, digits or '_', at most
// MaxTaskTypeBytes.
func ValidTaskType(s string) bool {
	if s == "" || len(s) > MaxTaskTypeBytes {
		return false
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z'
		other := c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return true
}

// Task is one row of queues.task: what is to be done. It never changes; what became of it stands in TaskLease, TaskError and TaskCompleted.
type Task struct {
	ID int64 `gorm:"column:task_id;primaryKey" json:"task_id"`
	// Type is "db_function", "email", "sms", "file_delete", or one that the application has a processor for.
	Type string `gorm:"column:task_type" json:"task_type"`
	// Payload is a JSON object.
	Payload    json.RawMessage `gorm:"column:payload" json:"payload"`
	EnqueuedAt time.Time       `gorm:"column:enqueued_at" json:"enqueued_at"`
	// ScheduledAt is from when on it is due.
	ScheduledAt time.Time `gorm:"column:scheduled_at" json:"scheduled_at"`
	// TraceParent is the trace of what asked for the task, as W3C Trace Context writes it; nil: it belonged to none.
	TraceParent *string `gorm:"->;column:traceparent" json:"traceparent,omitempty"`
}

// TableName implements GORM's Tabler.
func (Task) TableName() string { return "queues.task" }

// TaskLease is one row of queues.task_lease: a task was handed out, or its lease was renewed.
type TaskLease struct {
	ID        int64     `gorm:"column:task_lease_id;primaryKey" json:"task_lease_id"`
	TaskID    int64     `gorm:"column:task_id" json:"task_id"`
	LeasedAt  time.Time `gorm:"column:leased_at" json:"leased_at"`
	ExpiresAt time.Time `gorm:"column:expires_at" json:"expires_at"`
	// Renews is the ID of the lease that this row renews; nil: the task was handed out.
	Renews *int64 `gorm:"column:renews" json:"renews,omitempty"`
}

// TableName implements GORM's Tabler.
func (TaskLease) TableName() string { return "queues.task_lease" }

// TaskCompleted is one row of queues.task_completed: the task is done with, whether it succeeded or failed.
type TaskCompleted struct {
	TaskID      int64     `gorm:"column:task_id;primaryKey" json:"task_id"`
	CompletedAt time.Time `gorm:"column:completed_at" json:"completed_at"`
}

// TableName implements GORM's Tabler.
func (TaskCompleted) TableName() string { return "queues.task_completed" }

// TaskError is one row of queues.error: what went wrong while a task was processed.
type TaskError struct {
	ID        int64     `gorm:"column:error_id;primaryKey" json:"error_id"`
	TaskID    int64     `gorm:"column:task_id" json:"task_id"`
	Message   string    `gorm:"column:error_message" json:"error_message"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
}

// TableName implements GORM's Tabler.
func (TaskError) TableName() string { return "queues.error" }

// AllTasks in TaskLimit.Type means all tasks together.
const AllTasks = "*"

// TaskLimit is one row of queues.task_limit: the pause or the cap of a type of task.
type TaskLimit struct {
	// Type is the type, or AllTasks.
	Type string `gorm:"column:task_type;primaryKey" json:"task_type"`
	// PausedAt is since when none of these tasks is handed out; nil: they are not paused.
	PausedAt *time.Time `gorm:"column:paused_at" json:"paused_at,omitempty"`
	// MaxInFlight is how many of them may be leased at a time; nil: any number.
	MaxInFlight *int      `gorm:"column:max_in_flight" json:"max_in_flight,omitempty"`
	UpdatedAt   time.Time `gorm:"column:updated_at" json:"updated_at"`
}

// TableName implements GORM's Tabler.
func (TaskLimit) TableName() string { return "queues.task_limit" }

// TaskState is how a task stands, or what is asked of it in a search.
type TaskState string

// How a task stands.
const (
	// TaskWaiting: its time has not come.
	TaskWaiting TaskState = "waiting"
	// TaskReady: it is due, and no worker has it.
	TaskReady TaskState = "ready"
	// TaskLeased: a worker has it, and its lease has not expired.
	TaskLeased TaskState = "leased"
	// TaskDone: it is completed, whether it succeeded or failed.
	TaskDone TaskState = "completed"
	// TaskUnreachable: it is not completed, and no dequeue will find it; `daybook audit` lists such tasks.
	TaskUnreachable TaskState = "unreachable"
)

// What searches ask for beside the states.
const (
	// TaskStuck: it is open and needs a person; see the view queues.stuck_tasks.
	TaskStuck TaskState = "stuck"
	// TaskFailed: an error was noted of it, whether it is completed or not.
	TaskFailed TaskState = "failed"
)

// TaskSearches are the states by which tasks can be searched.
func TaskSearches() []TaskState {
	return []TaskState{TaskWaiting, TaskReady, TaskLeased, TaskStuck, TaskFailed, TaskDone}
}
