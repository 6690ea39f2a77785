package models

import "time"

// MaxTaskTypeBytes is how long the type of a task may be.
const MaxTaskTypeBytes = 63

// ValidTaskType reports whether a text can be the type of a task: a small letter and then small
// letters, digits or '_', at most MaxTaskTypeBytes.
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

// AllTasks in TaskLimit.Type means all tasks together.
const AllTasks = "*"

// TaskLimit is one row of queues.task_limit: the pause or the cap of a type of task.
type TaskLimit struct {
	// Type is the type, or AllTasks.
	Type string `gorm:"column:task_type;primaryKey" json:"type"`
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
	// TaskCompleted: it is completed, whether it succeeded or failed.
	TaskCompleted TaskState = "completed"
	// TaskUnreachable: it is not completed, and no dequeue will find it; `daybook audit` lists such
	// tasks.
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
	return []TaskState{TaskWaiting, TaskReady, TaskLeased, TaskStuck, TaskFailed, TaskCompleted}
}
