package models

import "time"

// Side is the side of an account to which an entry posts its amount.
type Side string

const (
	Debit  Side = "debit"
	Credit Side = "credit"
)

// Opposite returns the other side.
func (s Side) Opposite() Side {
	if s == Debit {
		return Credit
	}
	return Debit
}

// ImpactKind says whether an impact posts a document version or reverses an earlier impact.
type ImpactKind string

const (
	ImpactPost    ImpactKind = "post"
	ImpactReverse ImpactKind = "reverse"
)

// NoEntries is why a document is posted without an entry.
type NoEntries string

// The reasons.
const (
	// NoEntriesZero: all amounts that the document states are zero.
	NoEntriesZero NoEntries = "zero"
	// NoEntriesRule: its rule says that it posts nothing.
	NoEntriesRule NoEntries = "rule"
	// NoEntriesElsewhere: another system has posted the same.
	NoEntriesElsewhere NoEntries = "elsewhere"
)

// Words says the reason in words, without a full stop.
func (n NoEntries) Words() string {
	switch n {
	case NoEntriesZero:
		return "all its amounts are zero"
	case NoEntriesRule:
		return "its rule posts nothing"
	case NoEntriesElsewhere:
		return "what is posted elsewhere comes to the same"
	}
	return "it is not on record why: `daybook audit` lists it if it states an amount"
}

// Impact is one row of daybook.impacts: everything that one document version caused. Append-only.
type Impact struct {
	ID    int64  `gorm:"column:id;primaryKey" json:"id"`
	OrgID string `gorm:"column:org_id" json:"org_id"`
	// DocumentID names the document; its impacts form a chain post, reverse, post … numbered by Seq
	// from 1.
	DocumentID      string     `gorm:"column:document_id" json:"document_id"`
	DocumentVersion int64      `gorm:"column:document_version" json:"document_version"`
	Seq             int        `gorm:"column:seq" json:"seq"`
	PreviousSeq     *int       `gorm:"column:previous_seq;->" json:"-"`
	Kind            ImpactKind `gorm:"column:kind" json:"kind"`
	// RuleSetVersion is the version of the organization's rule set that made the entries; nil: made
	// by no rule set.
	RuleSetVersion *int64 `gorm:"column:rule_set_version" json:"rule_set_version,omitempty"`
	RuleID         string `gorm:"column:rule_id" json:"rule_id,omitempty"`
	DocumentDate   Date   `gorm:"column:document_date" json:"document_date"`
	PostingDate    Date   `gorm:"column:posting_date" json:"posting_date"`
	// EntryCount is the number of entries that were inserted with the impact; none can be added
	// later.
	EntryCount int `gorm:"column:entry_count" json:"entry_count"`
	// NoEntries is why an impact that posts has no entry; empty: it has some, or was made before that
	// was kept.
	NoEntries NoEntries `gorm:"column:no_entries" json:"no_entries,omitempty"`
	// Epoch tells deliberate reposts under unchanged versions apart.
	Epoch int `gorm:"column:epoch" json:"epoch,omitempty"`
	// ContentHash is the SHA-256 of what the rules made of the document; a new version with the same
	// hash posts nothing.
	ContentHash   []byte    `gorm:"column:content_hash" json:"-"`
	JobID         string    `gorm:"column:job_id" json:"job_id"`
	Attempt       int       `gorm:"column:attempt" json:"attempt"`
	WorkflowRunID string    `gorm:"column:workflow_run_id" json:"workflow_run_id,omitempty"`
	CreatedAt     time.Time `gorm:"column:created_at" json:"created_at"`
}

// TableName implements GORM's Tabler.
func (Impact) TableName() string { return "daybook.impacts" }

// Entry is one row of daybook.entries: one line of an impact. Append-only.
type Entry struct {
	ImpactID int64  `gorm:"column:impact_id;primaryKey" json:"impact_id"`
	LineNo   int    `gorm:"column:line_no;primaryKey" json:"line_no"`
	OrgID    string `gorm:"column:org_id" json:"org_id"`
	Account  string `gorm:"column:account_code" json:"account"`
	Side     Side   `gorm:"column:side" json:"side"`
	// Amount is in minor units of Currency and never negative.
	Amount   int64  `gorm:"column:amount_minor" json:"amount_minor"`
	Currency string `gorm:"column:currency" json:"currency"`
	// RuleLineID names the line of the rule that made the entry.
	RuleLineID string `gorm:"column:rule_line_id" json:"rule_line_id,omitempty"`
	// DocumentLine is the position, from 1, in the document's list that the rule line ran over; nil:
	// it ran over none.
	DocumentLine *int `gorm:"column:document_line" json:"document_line,omitempty"`
	// Dimensions are what statements can be split by, such as a cost centre; nil: nothing.
	Dimensions map[string]string `gorm:"column:dimensions;serializer:json" json:"dimensions,omitempty"`
}

// TableName implements GORM's Tabler.
func (Entry) TableName() string { return "daybook.entries" }

// AccountType is an account's place in the balance sheet or the profit and loss account.
type AccountType string

const (
	AccountAsset     AccountType = "asset"
	AccountLiability AccountType = "liability"
	AccountEquity    AccountType = "equity"
	AccountIncome    AccountType = "income"
	AccountExpense   AccountType = "expense"
)

// AccountRole is what an account is for beyond its type. Open items, the VAT summary, the list of
// what to do before a month is closed and the statement of cash find their accounts by it.
type AccountRole string

const (
	// RoleReceivable, RolePayable and RoleAdvance: what the organization is owed, owes, and what was
	// paid or received in advance. These accounts have open items.
	RoleReceivable AccountRole = "receivable"
	RolePayable    AccountRole = "payable"
	RoleAdvance    AccountRole = "advance"
	// RoleCash: money at hand, at a bank or on its way.
	RoleCash AccountRole = "cash"
	// RoleTax: tax that is owed, or that is deducted.
	RoleTax AccountRole = "tax"
	// RoleSuspense: what has no place yet. It should be empty when a month is closed.
	RoleSuspense AccountRole = "suspense"
	// RoleRounding: differences of rounding.
	RoleRounding AccountRole = "rounding"
	// RoleExchange: where the sides of a conversion meet, and differences of exchange.
	RoleExchange AccountRole = "exchange"
)

// AccountRoles are all of them.
var AccountRoles = []AccountRole{
	RoleReceivable, RolePayable, RoleAdvance, RoleCash, RoleTax, RoleSuspense, RoleRounding, RoleExchange,
}

// NoRoleOrSection takes an account's role or section away (books.PutAccounts), which an empty one
// leaves as it is.
const NoRoleOrSection = "none"

// Account is one row of daybook.accounts: an organization's chart of accounts.
type Account struct {
	OrgID     string      `gorm:"column:org_id;primaryKey" json:"org_id"`
	Code      string      `gorm:"column:code;primaryKey" json:"code"`
	Name      string      `gorm:"column:name" json:"name"`
	Type      AccountType `gorm:"column:type" json:"type"`
	CreatedAt time.Time   `gorm:"column:created_at" json:"created_at"`
	// Currencies are those that may be posted to the account; none: all.
	Currencies Currencies `gorm:"column:currencies" json:"currencies,omitempty"`
	// Role is what the account is for beyond its type; empty: nothing further.
	Role AccountRole `gorm:"column:role" json:"role,omitempty"`
	// Section is the heading in statements under which the account stands, such as "Current assets";
	// empty: that of its type alone.
	Section string `gorm:"column:section" json:"section,omitempty"`
}

// TableName implements GORM's Tabler.
func (Account) TableName() string { return "daybook.accounts" }

// Organization is one row of daybook.organizations.
type Organization struct {
	ID   string `gorm:"column:id;primaryKey" json:"id"`
	Name string `gorm:"column:name" json:"name"`
	// ActiveRuleSet is the version of the rule set that posts; nil: none, every document fails with
	// NO_MATCHING_RULE.
	ActiveRuleSet *int64 `gorm:"column:active_rule_set" json:"active_rule_set,omitempty"`
	// ConfigVersion grows by one whenever a rule set is activated or an account is added, so that a
	// job that failed under the configuration before can be tried again.
	ConfigVersion int64 `gorm:"column:config_version" json:"config_version"`
	// ClosedPeriodPolicy is what a document does whose posting date lies in a closed period.
	ClosedPeriodPolicy ClosedPeriodPolicy `gorm:"column:closed_period_policy" json:"closed_period_policy"`
	CreatedAt          time.Time          `gorm:"column:created_at" json:"created_at"`
	UpdatedAt          time.Time          `gorm:"column:updated_at" json:"updated_at"`
	// PausedAt is since when none of its jobs is leased; nil: it is not paused. Jobs that were leased
	// before are finished.
	PausedAt *time.Time `gorm:"column:paused_at" json:"paused_at,omitempty"`
	// MaxInFlight is how many of its jobs of each queue may be leased at a time, over all workers,
	// from 1; nil: any number. Jobs that were leased while there was no cap do not count.
	MaxInFlight *int `gorm:"column:max_in_flight" json:"max_in_flight,omitempty"`
	// Rate is how many attempts of its background jobs may begin in RateSeconds, over all workers,
	// from 1; nil: any number.
	Rate        *int     `gorm:"column:rate" json:"rate,omitempty"`
	RateSeconds *float64 `gorm:"column:rate_seconds" json:"rate_seconds,omitempty"`
	// Source names where its documents are read; nil: the default of all organizations.
	Source *string `gorm:"column:source" json:"source,omitempty"`
	// Hooks names the hooks that are called with its postings; nil: the default of all organizations.
	Hooks *Words `gorm:"column:hooks" json:"hooks,omitempty"`
	// Currency is its own, into which exchange differences are computed; nil: none.
	Currency *string `gorm:"column:currency" json:"currency,omitempty"`
	// ExchangeAccounts are the accounts by which exchange differences were booked last: adjustment,
	// gain, loss; nil: none were.
	ExchangeAccounts *Words `gorm:"column:exchange_accounts" json:"exchange_accounts,omitempty"`
}

// TableName implements GORM's Tabler.
func (Organization) TableName() string { return "daybook.organizations" }

// RuleSet is one row of daybook.rule_sets: one numbered version of an organization's posting rules.
type RuleSet struct {
	OrgID   string `gorm:"column:org_id;primaryKey" json:"org_id"`
	Version int64  `gorm:"column:version;primaryKey" json:"version"`
	Name    string `gorm:"column:name" json:"name"`
	// Source is the YAML as it was applied; SHA256 is its hash in hex.
	Source    string    `gorm:"column:source" json:"source,omitempty"`
	SHA256    string    `gorm:"column:sha256" json:"sha256"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
}

// TableName implements GORM's Tabler.
func (RuleSet) TableName() string { return "daybook.rule_sets" }
