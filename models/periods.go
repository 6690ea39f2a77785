package models

import "time"

// ClosedPeriodPolicy is what a document does whose posting date lies in a closed period.
type ClosedPeriodPolicy string

const (
	// PolicyFail: the job fails with PERIOD_CLOSED until the period is opened.
	PolicyFail ClosedPeriodPolicy = "fail"
	// PolicyFirstOpenDay: the document is posted on the first open day after its date.
	PolicyFirstOpenDay ClosedPeriodPolicy = "first_open_day"
)

// PeriodState says whether a period may be posted into.
type PeriodState string

const (
	PeriodOpen   PeriodState = "open"
	PeriodClosed PeriodState = "closed"
)

// Period is one row of daybook.periods: a span of an organization's posting dates. A date in no
// period is open, unless it lies before a closed one, or between the last closed one and the first
// open one after it.
type Period struct {
	OrgID string `gorm:"column:org_id;primaryKey" json:"org_id"`
	// StartsOn and EndsOn are the first and the last day.
	StartsOn Date        `gorm:"column:starts_on;primaryKey" json:"starts_on"`
	EndsOn   Date        `gorm:"column:ends_on" json:"ends_on"`
	State    PeriodState `gorm:"column:state" json:"state"`
	// ClosedAt is when it was closed last; nil: it is open.
	ClosedAt  *time.Time `gorm:"column:closed_at" json:"closed_at,omitempty"`
	CreatedAt time.Time  `gorm:"column:created_at" json:"created_at"`
	UpdatedAt time.Time  `gorm:"column:updated_at" json:"updated_at"`
}

// TableName implements GORM's Tabler.
func (Period) TableName() string { return "daybook.periods" }

// Confirmation is one row of daybook.confirmations: a later version, or rule set, under which a
// live impact stands unchanged. Append-only.
type Confirmation struct {
	ImpactID        int64     `gorm:"column:impact_id;primaryKey" json:"impact_id"`
	DocumentVersion int64     `gorm:"column:document_version;primaryKey" json:"document_version"`
	RuleSetVersion  int64     `gorm:"column:rule_set_version;primaryKey" json:"rule_set_version"`
	JobID           string    `gorm:"column:job_id" json:"job_id"`
	Attempt         int       `gorm:"column:attempt" json:"attempt"`
	WorkflowRunID   string    `gorm:"column:workflow_run_id" json:"workflow_run_id,omitempty"`
	CreatedAt       time.Time `gorm:"column:created_at" json:"created_at"`
}

// TableName implements GORM's Tabler.
func (Confirmation) TableName() string { return "daybook.confirmations" }
