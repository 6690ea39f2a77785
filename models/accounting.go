package models

import (
	"time"
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
	// Generation grows with each request; a completion ends only the generation that was leased.
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
	// Working is set while the row is being worked: when its lease is reclaimed, the lost attempt
	// counts.
	Working bool `gorm:"column:working" json:"working,omitempty"`
	// Detached says that the process that works it holds it beyond its turn, under a turn of its own
	// that no activity works.
	Detached bool `gorm:"column:detached" json:"detached,omitempty"`
	Reclaims int  `gorm:"column:reclaims" json:"reclaims,omitempty"`
	// Capped says that the last lease counted towards its organization's MaxInFlight.
	Capped bool `gorm:"column:capped" json:"capped,omitempty"`
	// TraceParent is the trace of the request that the next attempt answers, as W3C Trace Context
	// writes it; nil: it belongs to none. It is set from the setting daybook.traceparent.
	TraceParent *string `gorm:"->;column:traceparent" json:"traceparent,omitempty"`
	// The attempt that completed the job: its turn, its fence, the worker, and when it began. All nil
	// unless State is JobCompleted, and when the row was changed since: the attempt is in the log
	// then. VersionHint is its version, RunCount its number and FinishedAt its end; Attempt has it in
	// one.
	CompletedTurnID    *string    `gorm:"->;column:completed_turn_id" json:"completed_turn_id,omitempty"`
	CompletedFence     *int64     `gorm:"->;column:completed_fence" json:"-"`
	CompletedBy        *string    `gorm:"->;column:completed_by" json:"completed_by,omitempty"`
	CompletedStartedAt *time.Time `gorm:"->;column:completed_started_at" json:"completed_started_at,omitempty"`
	// NoEntries is, in lists, why the document of a completed job is posted without an entry; empty:
	// it has some.
	NoEntries NoEntries `gorm:"-" json:"no_entries,omitempty"`
}

// TableName implements GORM's Tabler.
func (AccountingJob) TableName() string { return "daybook.accounting_work_queue" }
