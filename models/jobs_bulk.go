package models

import (
	"encoding/json"
	"time"
)

// BulkAction is what a bulk operation does with its jobs.
type BulkAction string

// The actions of bulk operations.
const (
	BulkRetry  BulkAction = "retry"
	BulkCancel BulkAction = "cancel"
	BulkEdit   BulkAction = "edit"
)

// BulkOperation is one row of daybook.bulk_operations: a request that changes many jobs.
type BulkOperation struct {
	ID string `gorm:"column:id;primaryKey" json:"id"`
	// Kind is KindJobs or KindAccounting.
	Kind Kind `gorm:"column:kind" json:"kind"`
	// OrgID is the organization whose jobs are meant; nil: those of all.
	OrgID  *string    `gorm:"column:org_id" json:"org_id,omitempty"`
	Action BulkAction `gorm:"column:action" json:"action"`
	// Mode and DelaySeconds are a retry's; an edit with a Mode is a retry as well.
	Mode         *string  `gorm:"column:mode" json:"mode,omitempty"`
	DelaySeconds *float64 `gorm:"column:delay_seconds" json:"delay_seconds,omitempty"`
	// Patch is the JSON patch of an edit that is not finished, Actor who edits.
	Patch json.RawMessage `gorm:"column:patch" json:"-"`
	Actor *string         `gorm:"column:actor" json:"actor,omitempty"`
	// States are those in which a job is changed.
	States Words `gorm:"column:states" json:"states"`
	// Matched counts the jobs that were meant when the request was made.
	Matched int `gorm:"column:matched" json:"matched"`
	// Changed counts those that are pending again, or edited, or cancelled, or will be after their
	// running attempt.
	Changed int `gorm:"column:changed" json:"changed"`
	// LeftAlone counts those that had changed meanwhile, were locked by another transaction, or are
	// counted by LeftOpen and LeftQueue.
	LeftAlone int `gorm:"column:left_alone" json:"left_alone"`
	// LeftOpen counts those of a retry that are to be the only open job of their payload or schedule,
	// while another one is open.
	LeftOpen int `gorm:"column:left_open" json:"left_open"`
	// LeftQueue counts those of a retry whose named queue was deleted.
	LeftQueue int       `gorm:"column:left_queue" json:"left_queue"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
	UpdatedAt time.Time `gorm:"column:updated_at" json:"updated_at"`
	// FinishedAt is nil while there are batches left.
	FinishedAt *time.Time `gorm:"column:finished_at" json:"finished_at,omitempty"`
}

// TableName implements GORM's Tabler.
func (BulkOperation) TableName() string { return "daybook.bulk_operations" }
