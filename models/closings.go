package models

import (
	"encoding/json"
	"math/big"
	"time"
)

// ClosingAction says what became of days.
type ClosingAction string

// The actions.
const (
	ActionClosed ClosingAction = "closed"
	ActionOpened ClosingAction = "opened"
)

// Closing is one row of daybook.closings: the closing of a period, or its opening. Append-only.
type Closing struct {
	OrgID string `json:"org_id"`
	// Number counts an organization's closings and openings from 1.
	Number int           `json:"number"`
	Action ClosingAction `json:"action"`
	// StartsOn and EndsOn are the period's first and last day.
	StartsOn Date `json:"starts_on"`
	EndsOn   Date `json:"ends_on"`
	// Days are the days that it closed or opened, those in no period that go with the period's
	// included; ClosedDays are all that are closed after it. Both are as PostgreSQL writes ranges:
	// {[2025-03-01,2025-04-01)}.
	Days       string `json:"days"`
	ClosedDays string `json:"closed_days"`
	// ClosedBy is who closed or opened, DBRole the role of the database that did.
	ClosedBy  string    `json:"closed_by"`
	DBRole    string    `json:"db_role"`
	CreatedAt time.Time `json:"created_at"`
	// Impacts and Entries count what the days had.
	Impacts int64 `json:"impacts"`
	Entries int64 `json:"entries"`
	// LastImpactID is as high as the id of any impact that was made before it, and lower than that of
	// any that was made after it.
	LastImpactID int64 `json:"last_impact_id"`
	// ImpactsHash is the SHA-256 of the impacts and their entries, Hash that of the row with
	// PreviousHash, the hash of the row before it; all in hexadecimal.
	ImpactsHash  string `json:"impacts_hash"`
	PreviousHash string `json:"previous_hash,omitempty"`
	Hash         string `json:"hash"`
	// List is what was open when it was closed, as an array of closing items; nil: it was opened.
	List json.RawMessage `json:"list,omitempty"`
	// Signature is the Ed25519 signature of the text "daybook closing " and Hash; nil: not signed.
	// KeyID names the key that signed.
	Signature []byte `json:"signature,omitempty"`
	KeyID     string `json:"key_id,omitempty"`
}

// ClosingCode says what is open before a period is closed.
type ClosingCode string

// The codes, in their order in the list.
const (
	// ClosingFailed: jobs failed of documents with a date that would be closed.
	ClosingFailed ClosingCode = "UNPOSTED_FAILED"
	// ClosingWaiting: jobs of such documents wait, or run.
	ClosingWaiting ClosingCode = "UNPOSTED_WAITING"
	// ClosingOpenBefore: periods before it are open.
	ClosingOpenBefore ClosingCode = "OPEN_BEFORE"
	// ClosingUndated: documents are not posted, and Daybook knows no date of them.
	ClosingUndated ClosingCode = "UNDATED"
	// ClosingSuspense: an account with the role suspense has a balance.
	ClosingSuspense ClosingCode = "SUSPENSE"
	// ClosingRounding: an account with the role rounding has a balance.
	ClosingRounding ClosingCode = "ROUNDING"
	// ClosingUnreconciled: something is open of payments or credit notes.
	ClosingUnreconciled ClosingCode = "UNRECONCILED"
	// ClosingExchange: differences of exchange rates are realised and not booked.
	ClosingExchange ClosingCode = "EXCHANGE"
	// ClosingRates: rates are missing to compute such differences.
	ClosingRates ClosingCode = "RATES"
	// ClosingTax: what documents state of taxes is not what is posted of them.
	ClosingTax ClosingCode = "TAX"
)

// ClosingItem is one row of the list that is worked off before a period is closed.
type ClosingItem struct {
	Code ClosingCode `json:"code"`
	// Required says that it has to be done before.
	Required bool `json:"required"`
	// Count is how many there are: documents, periods, accounts.
	Count int64 `json:"count"`
	// Account and Currency are empty where it is about none. Amount is in minor units: debits less
	// credits, of ClosingTax what is owed by the documents and not posted, of ClosingExchange
	// what is won; nil: it has none.
	Account  string   `json:"account,omitempty"`
	Currency string   `json:"currency,omitempty"`
	Amount   *big.Int `json:"amount_minor,omitempty"`
	// Examples are ids of documents, first days of periods, or currencies, at most 20.
	Examples []string `json:"examples,omitempty"`
	// WhatToDo says it in a sentence.
	WhatToDo string `json:"what_to_do"`
}

// AdjustmentReason says how what belongs to a closed period came to be posted.
type AdjustmentReason string

// The reasons.
const (
	// AdjustedOpenedAgain: it stands on the period's days, which were open again.
	AdjustedOpenedAgain AdjustmentReason = "opened_again"
	// AdjustedLaterDay: it stands on the first open day after the period.
	AdjustedLaterDay AdjustmentReason = "later_day"
)

// Adjustment is what was posted of a period after it was first closed, in one currency.
type Adjustment struct {
	ImpactID     int64            `json:"impact_id"`
	DocumentID   string           `json:"document_id"`
	Kind         ImpactKind       `json:"kind"`
	Reason       AdjustmentReason `json:"reason"`
	DocumentDate Date             `json:"document_date"`
	PostingDate  Date             `json:"posting_date"`
	CreatedAt    time.Time        `json:"created_at"`
	// Currency is empty, and Debits nil, where the impact has no entry. Debits are minor units, and
	// equal credits.
	Currency string   `json:"currency,omitempty"`
	Debits   *big.Int `json:"debits_minor,omitempty"`
}
