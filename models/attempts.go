package models

import (
	"time"
)

// Kind says which queue something is about.
type Kind string

// The kinds of queue.
const (
	// KindAccounting: documents that are posted, daybook.accounting_work_queue.
	KindAccounting Kind = "accounting"
	// KindJobs: background jobs, daybook.jobs.
	KindJobs Kind = "jobs"
	// KindTasks: tasks, queues.task.
	KindTasks Kind = "tasks"
)

// Outcome is what an attempt led to.
type Outcome string

const (
	OutcomeCompleted   Outcome = "completed"
	OutcomeRetried     Outcome = "retried"
	OutcomeRescheduled Outcome = "rescheduled"
	OutcomeFailed      Outcome = "failed"
	OutcomeCancelled   Outcome = "cancelled"
	// OutcomeLost: the lease was reclaimed before the attempt ended.
	OutcomeLost Outcome = "lost"
)

// Attempt is one row of the view daybook.attempts: one try at a job, or several in a row that only
// put it off (Times). JobAttempt is the same for a background job.
type Attempt struct {
	ID    int64  `gorm:"column:id;primaryKey" json:"id"`
	JobID string `gorm:"column:job_id;primaryKey" json:"job_id"`
	// Kind is KindAccounting or KindJobs; Type is the job's, and nil for KindAccounting.
	Kind       Kind    `gorm:"column:kind" json:"-"`
	Type       *string `gorm:"column:type" json:"-"`
	OrgID      string  `gorm:"column:org_id" json:"org_id"`
	DocumentID string  `gorm:"column:document_id" json:"document_id"`
	Version    int64   `gorm:"column:version" json:"version"`
	// Attempt is the job's run_count during this try, from 1.
	Attempt       int        `gorm:"column:attempt" json:"attempt"`
	Outcome       Outcome    `gorm:"column:outcome" json:"outcome"`
	ErrorCode     *ErrorCode `gorm:"column:error_code" json:"error_code,omitempty"`
	Error         *string    `gorm:"column:error" json:"error,omitempty"`
	StartedAt     time.Time  `gorm:"column:started_at" json:"started_at"`
	EndedAt       time.Time  `gorm:"column:ended_at" json:"ended_at"`
	Worker        string     `gorm:"column:worker" json:"worker"`
	TurnID        string     `gorm:"column:turn_id" json:"turn_id"`
	Fence         int64      `gorm:"column:fence" json:"fence"`
	WorkflowRunID string     `gorm:"column:workflow_run_id" json:"workflow_run_id"`
	// Times is how many attempts in a row the row stands for: those that were rescheduled for the
	// same reason are one row, whose other fields are the last one's. FirstStartedAt is when the
	// first of them began; nil when Times is 1.
	Times          int        `gorm:"column:times" json:"times"`
	FirstStartedAt *time.Time `gorm:"column:first_started_at" json:"first_started_at,omitempty"`
}

// TableName implements GORM's Tabler.
func (Attempt) TableName() string { return "daybook.attempts" }
