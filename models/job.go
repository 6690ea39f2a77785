package models

import (
	"fmt"
	"slices"
	"time"
)

// JobState is where a job stands. What may follow what is Transitions.
type JobState string

const (
	JobPending   JobState = "pending"
	JobLeased    JobState = "leased"
	JobCompleted JobState = "completed"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// JobStates lists every state in the order of a job's life.
func JobStates() []JobState {
	return []JobState{JobPending, JobLeased, JobCompleted, JobFailed, JobCancelled}
}

// ParseJobState returns the state with that name.
func ParseJobState(s string) (JobState, error) {
	if st := JobState(s); slices.Contains(JobStates(), st) {
		return st, nil
	}
	return "", fmt.Errorf("unknown state %q: want one of %v", s, JobStates())
}

// Transition is one arrow of a job's life.
type Transition struct {
	From, To JobState
	// By says in words what takes the job from From to To.
	By string
}

// Transitions is every change of state there is; docs/states.md is tested against it.
func Transitions() []Transition {
	return []Transition{
		{JobPending, JobLeased, "a turn leases the job: it is due and nobody else holds it"},
		{JobPending, JobCompleted, "a turn locks, works and settles the job in one transaction, without a lease"},
		{JobPending, JobPending, "the same, and the attempt is to be repeated; or a request moves the job's time"},
		{JobPending, JobFailed, "the same, and the error is permanent, or the attempts are used up; or the job's row cannot be read"},
		{JobLeased, JobCompleted, "the attempt commits its effect and settles the job in one transaction"},
		{JobLeased, JobPending, "the attempt is to be repeated (backoff, not ready, version mismatch, locked), is given back uncounted, something newer was asked for meanwhile, or the lease expired: its holder has not renewed it for ten seconds"},
		{JobLeased, JobFailed, "the error is permanent, or the attempts are used up"},
		{JobLeased, JobCancelled, "the document is deleted, or Cancel was asked for during the attempt"},
		{JobLeased, JobLeased, "another turn, or a later activity of the same turn, takes the lease over"},
		{JobPending, JobCancelled, "Cancel; or a turn works the job without a lease, and its document is deleted"},
		{JobFailed, JobCancelled, "Cancel"},
		{JobCompleted, JobPending, "Enqueue with a newer version, or MarkPending"},
		{JobFailed, JobPending, "Enqueue with a newer version, MarkPending, or the cause is gone (rule set activated, account added, period opened)"},
		{JobCancelled, JobPending, "Enqueue with the same or a newer version, or MarkPending"},
	}
}

// Priority orders due jobs: 1 is highest. The zero value means PriorityNormal.
type Priority int16

const (
	PriorityHigh   Priority = 1
	PriorityNormal Priority = 2
	PriorityLow    Priority = 3
)

// AccountingJob is one row of daybook.accounting_work_queue: the work of posting one document.
type AccountingJob struct {
	ID         string    `gorm:"column:id;primaryKey" json:"id"`
	CreatedAt  time.Time `gorm:"column:created_at" json:"created_at"`
	UpdatedAt  time.Time `gorm:"column:updated_at" json:"updated_at"`
	OrgID      string    `gorm:"column:org_id" json:"org_id"`
	DocumentID string    `gorm:"column:document_id" json:"document_id"`
	// VersionHint is the newest document version that was asked for.
	VersionHint int64 `gorm:"column:version_hint" json:"version_hint"`
	// ReadyAt is when the job is due next.
	ReadyAt time.Time `gorm:"column:ready_at" json:"ready_at"`
	State   JobState  `gorm:"column:state" json:"state"`
	// RunCount counts attempts, the running one included.
	RunCount int `gorm:"column:run_count" json:"run_count"`
	// LastAttemptedAt is when the last lease was taken or renewed.
	LastAttemptedAt *time.Time `gorm:"column:last_attempted_at" json:"last_attempted_at,omitempty"`
	LastError       *string    `gorm:"column:last_error" json:"last_error,omitempty"`
	LastErrorCode   *ErrorCode `gorm:"column:last_error_code" json:"last_error_code,omitempty"`
	Priority        Priority   `gorm:"column:priority" json:"priority"`
	// FirstReadyAt is when the present request was first due; backoff leaves it alone.
	FirstReadyAt time.Time  `gorm:"column:first_ready_at" json:"first_ready_at"`
	FinishedAt   *time.Time `gorm:"column:finished_at" json:"finished_at,omitempty"`
	// Generation grows with each request; a settlement finishes only the generation that was leased.
	Generation int64 `gorm:"column:generation" json:"generation"`
	// DeletedVersion is the version in which the document was deleted explicitly; nil: it never was.
	DeletedVersion  *int64 `gorm:"column:deleted_version" json:"deleted_version,omitempty"`
	CancelRequested bool   `gorm:"column:cancel_requested" json:"cancel_requested,omitempty"`
	// Epoch grows with each deliberate repost.
	Epoch         int `gorm:"column:epoch" json:"epoch,omitempty"`
	NotReadyCount int `gorm:"column:not_ready_count" json:"not_ready_count,omitempty"`

	// The lease; all nil unless State is JobLeased.
	TurnID           *string    `gorm:"column:turn_id" json:"turn_id,omitempty"`
	Fence            *int64     `gorm:"column:fence" json:"fence,omitempty"`
	LeasedGeneration *int64     `gorm:"column:leased_generation" json:"-"`
	Worker           *string    `gorm:"column:worker" json:"worker,omitempty"`
	AttemptStartedAt *time.Time `gorm:"column:attempt_started_at" json:"attempt_started_at,omitempty"`
	// Working is set while the row alone is being worked: a take-over charges it with the lost attempt.
	Working   bool `gorm:"column:working" json:"working,omitempty"`
	Takeovers int  `gorm:"column:takeovers" json:"takeovers,omitempty"`
	// Capped says that the last lease counted towards its organization's MaxInFlight.
	Capped bool `gorm:"column:capped" json:"capped,omitempty"`
}

// TableName implements GORM's Tabler.
func (AccountingJob) TableName() string { return "daybook.accounting_work_queue" }

// AttemptKind says which queue an attempt was at.
type AttemptKind string

const (
	// AttemptAccounting: daybook.accounting_work_queue.
	AttemptAccounting AttemptKind = "accounting"
	// AttemptJobs: daybook.jobs.
	AttemptJobs AttemptKind = "jobs"
)

// Outcome is what an attempt led to.
type Outcome string

const (
	OutcomeCompleted   Outcome = "completed"
	OutcomeRetried     Outcome = "retried"
	OutcomeRescheduled Outcome = "rescheduled"
	OutcomeFailed      Outcome = "failed"
	OutcomeCancelled   Outcome = "cancelled"
	// OutcomeLost: the lease was taken over before the attempt settled.
	OutcomeLost Outcome = "lost"
)

// Attempt is one row of daybook.attempts: one try at a job, or several in a row that only put it off (Times). What a background job's attempt has instead of a
// document is read as JobAttempt.
type Attempt struct {
	ID    int64  `gorm:"column:id;primaryKey" json:"id"`
	JobID string `gorm:"column:job_id;primaryKey" json:"job_id"`
	// Kind is AttemptAccounting or AttemptJobs; Type is the job's, and nil for AttemptAccounting.
	Kind       AttemptKind `gorm:"column:kind" json:"-"`
	Type       *string     `gorm:"column:type" json:"-"`
	OrgID      string      `gorm:"column:org_id" json:"org_id"`
	DocumentID string      `gorm:"column:document_id" json:"document_id"`
	Version    int64       `gorm:"column:version" json:"version"`
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
	// Times is how many attempts in a row the row stands for: those that were rescheduled for the same reason are one row, whose
	// other fields are the last one's. FirstStartedAt is when the first of them began; nil when Times is 1.
	Times          int        `gorm:"column:times" json:"times"`
	FirstStartedAt *time.Time `gorm:"column:first_started_at" json:"first_started_at,omitempty"`
}

// TableName implements GORM's Tabler.
func (Attempt) TableName() string { return "daybook.attempts" }
