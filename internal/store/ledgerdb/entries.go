package ledgerdb

import "github.com/daybook-dev/daybook/models"

// EntryLine is an entry with the columns that explain it.
type EntryLine struct {
	models.Entry
	DocumentID      string            `gorm:"column:document_id"`
	DocumentVersion int64             `gorm:"column:document_version"`
	Kind            models.ImpactKind `gorm:"column:kind"`
	PostingDate     models.Date       `gorm:"column:posting_date"`
	DocumentDate    models.Date       `gorm:"column:document_date"`
	RuleSetVersion  *int64            `gorm:"column:rule_set_version"`
	RuleID          string            `gorm:"column:rule_id"`
	Epoch           int               `gorm:"column:epoch"`
	JobID           string            `gorm:"column:job_id"`
	Attempt         int               `gorm:"column:attempt"`
	WorkflowRunID   string            `gorm:"column:workflow_run_id"`
}
