package models

import "time"

// JobWorkflow is one row of daybook.job_workflows: a workflow of Temporal that works a job and has not ended. It may stay when its job is removed.
type JobWorkflow struct {
	JobID string `gorm:"column:job_id;primaryKey" json:"job_id"`
	// Namespace is Temporal's.
	Namespace string `gorm:"column:namespace" json:"namespace"`
	// AskedAt is when the last attempt asked Temporal to start it.
	AskedAt time.Time `gorm:"column:asked_at" json:"asked_at"`
	// GraceSeconds is how long after the request to cancel it a workflow may run before it is terminated.
	GraceSeconds float64 `gorm:"column:grace_seconds" json:"grace_seconds"`
	// DueAt is when a worker is to see to its end, because its job has ended; nil: the job goes on.
	DueAt *time.Time `gorm:"column:due_at" json:"due_at,omitempty"`
	// CancelledAt is when Temporal was asked to cancel it.
	CancelledAt *time.Time `gorm:"column:cancelled_at" json:"cancelled_at,omitempty"`
}

// TableName implements GORM's Tabler.
func (JobWorkflow) TableName() string { return "daybook.job_workflows" }
