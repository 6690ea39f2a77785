package models

import (
	"encoding/json"
	"time"
)

// NextPosting says what a newer version of a document does that another system has posted.
type NextPosting string

const (
	// NextDifference: the ledger posts the new version and the mirror of what is posted elsewhere, as
	// one impact.
	NextDifference NextPosting = "difference"
	// NextWait: the job fails with CodePostedElsewhere until a person decides (`daybook accounting
	// elsewhere`).
	NextWait NextPosting = "wait"
	// NextFull: the other system has taken its posting back, so the document is posted as any other.
	NextFull NextPosting = "full"
)

// PostedElsewhere is one row of daybook.posted_elsewhere: what another system has posted of a
// document.
type PostedElsewhere struct {
	OrgID      string `gorm:"column:org_id;primaryKey" json:"org_id"`
	DocumentID string `gorm:"column:document_id;primaryKey" json:"document_id"`
	// DocumentVersion is the newest version that is posted elsewhere: Daybook posts nothing for it.
	// -1 is below every version.
	DocumentVersion int64       `gorm:"column:document_version" json:"document_version"`
	Next            NextPosting `gorm:"column:next" json:"next"`
	// Entries are what is posted elsewhere: a JSON array of EntryElsewhere. Nil: not known, then Next
	// is not NextDifference.
	Entries json.RawMessage `gorm:"column:entries" json:"entries,omitempty"`
	// PostedOn is the posting date of Entries.
	PostedOn Date `gorm:"column:posted_on" json:"posted_on"`
	// System names where it is posted.
	System string `gorm:"column:system" json:"system"`
	// LeftVersion is the version up to which a person decided that Daybook posts nothing; nil: no
	// such decision.
	LeftVersion *int64 `gorm:"column:left_version" json:"left_version,omitempty"`
	// OpenItem is the document that stands for it here, with what was open of it; nil: none does.
	OpenItem  *string   `gorm:"column:open_item" json:"open_item,omitempty"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
	UpdatedAt time.Time `gorm:"column:updated_at" json:"updated_at"`
}

// TableName implements GORM's Tabler.
func (PostedElsewhere) TableName() string { return "daybook.posted_elsewhere" }

// EntryElsewhere is one entry that another system has posted.
type EntryElsewhere struct {
	Account string `json:"account"`
	Side    Side   `json:"side"`
	// Amount is in minor units of Currency, above zero.
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}
