package ledgerdb

import "github.com/daybook-dev/daybook/models"

// EntryLine is an entry with the columns that explain it.
type EntryLine struct {
	models.Entry
	DocumentID      string            `gorm:"column:document_id" json:"document_id"`
	DocumentVersion int64             `gorm:"column:document_version" json:"document_version"`
	Kind            models.ImpactKind `gorm:"column:kind" json:"kind"`
	PostingDate     models.Date       `gorm:"column:posting_date" json:"posting_date"`
	DocumentDate    models.Date       `gorm:"column:document_date" json:"document_date"`
	RuleSetVersion  *int64            `gorm:"column:rule_set_version" json:"rule_set_version,omitempty"`
	RuleID          string            `gorm:"column:rule_id" json:"rule_id,omitempty"`
	Epoch           int               `gorm:"column:epoch" json:"epoch,omitempty"`
	JobID           string            `gorm:"column:job_id" json:"job_id"`
	Attempt         int               `gorm:"column:attempt" json:"attempt"`
	WorkflowRunID   string            `gorm:"column:workflow_run_id" json:"workflow_run_id,omitempty"`
}
