package models

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// DocumentType says what kind of business document a row is.
type DocumentType string

// The document types that Daybook's importers write. A rule set may match any other string as well.
const (
	DocumentInvoice    DocumentType = "invoice"
	DocumentCreditNote DocumentType = "credit_note"
	DocumentPayment    DocumentType = "payment"
	DocumentRefund     DocumentType = "refund"
	DocumentPayout     DocumentType = "payout"
	DocumentDelivery   DocumentType = "delivery"
	// DocumentJournal is a journal entry that a person wrote, or an opening balance; see
	// Content.Journal.
	DocumentJournal DocumentType = "journal"
)

// Direction says who issued a document: "out" the organization itself (a sale), "in" another party
// (a bill is an incoming invoice). For payments it is the direction of the money: "in" is received.
type Direction string

const (
	DirectionOut Direction = "out"
	DirectionIn  Direction = "in"
)

// Document is one row of daybook.documents: an organization's business document.
// The columns are what queries and rules need most; everything else is in Content.
type Document struct {
	OrgID     string       `gorm:"column:org_id;primaryKey" json:"org_id"`
	ID        string       `gorm:"column:id;primaryKey" json:"id"`
	Type      DocumentType `gorm:"column:type" json:"type"`
	Direction Direction    `gorm:"column:direction" json:"direction"`
	// Currency is the ISO 4217 code of every amount that does not name its own.
	Currency string `gorm:"column:currency" json:"currency"`
	// IssueDate is the date printed on the document.
	IssueDate Date `gorm:"column:issue_date" json:"issue_date"`
	// ValueDate is the date on which money moved or a service was rendered; nil: the issue date.
	ValueDate *Date   `gorm:"column:value_date" json:"value_date,omitempty"`
	Content   Content `gorm:"column:content;serializer:json" json:"content"`

	// AccountingReadyAt is when domain code marked the document ready to be posted; nil: not ready.
	AccountingReadyAt *time.Time `gorm:"column:accounting_ready_at" json:"accounting_ready_at,omitempty"`
	// AccountingReadyVersion grows by one each time the document is marked ready, not ready or
	// deleted.
	AccountingReadyVersion int64 `gorm:"column:accounting_ready_version" json:"accounting_ready_version"`
	// AccountingImpactCreatedAt is when the live impact was posted; nil: none is live. Kept for
	// readers of older schemas; nothing is locked by it.
	AccountingImpactCreatedAt *time.Time `gorm:"column:accounting_impact_created_at" json:"accounting_impact_created_at,omitempty"`
	DeletedAt                 *time.Time `gorm:"column:deleted_at" json:"deleted_at,omitempty"`
	// ImportID is the import that wrote the document last (`daybook import list`); nil: none did.
	ImportID  *int64    `gorm:"column:import_id" json:"import_id,omitempty"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
	UpdatedAt time.Time `gorm:"column:updated_at" json:"updated_at"`
}

// TableName implements GORM's Tabler.
func (Document) TableName() string { return "daybook.documents" }

// Content is the part of a document that is stored as JSON: its lines, taxes and totals as the
// document states them. Amounts are int64 minor units of the document's currency (cents for EUR,
// whole yen for JPY). Daybook never recomputes a total from lines.
type Content struct {
	Number       string `json:"number,omitempty"`
	Counterparty string `json:"counterparty,omitempty"`
	// Country is the tax country of the document (ISO 3166-1 alpha-2).
	Country string `json:"country,omitempty"`

	Lines []Line `json:"lines,omitempty"`
	Taxes []Tax  `json:"taxes,omitempty"`

	// Total is the document's total with tax, before advances.
	Total int64 `json:"total,omitempty"`
	// Prepaid is what was paid in advance.
	Prepaid int64 `json:"prepaid,omitempty"`
	// Payable is what is still owed.
	Payable int64 `json:"payable,omitempty"`
	// Rounding is the rounding difference that the document itself states.
	Rounding int64 `json:"rounding,omitempty"`

	// Amount and Fee belong to payments, refunds and payouts.
	Amount int64 `json:"amount,omitempty"`
	Fee    int64 `json:"fee,omitempty"`
	// Settled is what arrived in another currency; nil: nothing was converted.
	Settled *Money `json:"settled,omitempty"`
	// Zero says that the document states its amounts, and that they are zero. A reader of JSON sets
	// it where an amount is there as 0, which the fields above cannot tell from one that is absent. A
	// document that states no amount at all is refused.
	Zero bool `json:"zero,omitempty"`

	// Journal is what the document posts without a rule; nil: a rule decides.
	Journal *Journal `json:"journal,omitempty"`

	// DueDate is when it is to be paid; zero: it does not say.
	DueDate Date `json:"due_date,omitzero"`
	// RefersTo names the documents that it pays, corrects or deducts, by their numbers or ids.
	RefersTo []string `json:"refers_to,omitempty"`

	// Attributes are further values for rules to match.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Dimensions are those of all entries of the document; those of a line, and of a rule's line, take
	// precedence.
	Dimensions Dimensions `json:"dimensions,omitempty"`
	// Source says where the document was imported from (for instance "gobl").
	Source string `json:"source,omitempty"`
}

// Line is one line, charge or discount of a document. A discount has a negative Net.
type Line struct {
	// Kind groups lines for account determination: "item", "charge", "discount", "shipping", "stock"
	// …
	Kind        string `json:"kind"`
	Code        string `json:"code,omitempty"`
	Description string `json:"description,omitempty"`
	// Net is the line's amount without tax, in minor units.
	Net int64 `json:"net"`
	// Cost is what the goods of the line cost the organization, in minor units.
	Cost int64 `json:"cost,omitempty"`
	// Rate is the line's main tax rate. JSON may state it as rate_bp in basis points instead (1900 =
	// 19 %).
	Rate Rate `json:"rate,omitzero"`
	// Category is the tax category as the source names it ("VAT", "IRPF" …).
	Category string `json:"category,omitempty"`
	// TaxCode says how the category treats the line, as Tax.Code.
	TaxCode string `json:"tax_code,omitempty"`
	// Dimensions are those of the entries that a rule makes of the line.
	Dimensions Dimensions `json:"dimensions,omitempty"`
}

// Tax is one tax total of a document.
type Tax struct {
	Category string `json:"category"`
	// Code says how the category treats what is taxed, by the codes of EN 16931 (UNTDID 5305): S
	// standard, Z zero rate, E exempt, AE reverse charge, K within the EU, G export, O outside of the
	// tax; empty: the source does not say.
	Code string `json:"code,omitempty"`
	// Rate is the tax's rate. JSON may state it as rate_bp in basis points instead (1900 = 19 %).
	Rate Rate  `json:"rate"`
	Base int64 `json:"base,omitempty"`
	// Amount is positive for a tax that is owed on top and negative for one that is retained.
	Amount   int64 `json:"amount"`
	Retained bool  `json:"retained,omitempty"`
	// Exemption is why no tax is charged, in words or as a code, as the source says.
	Exemption string `json:"exemption,omitempty"`
}

// Journal is a journal entry that a person wrote: it posts its entries, and no rule is asked. A
// document that has one states no other amount.
type Journal struct {
	// Reason is why it is posted, By who wrote it.
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Entries balance in each currency.
	Entries []JournalEntry `json:"entries"`
}

// Debits returns the sum of the debits in each currency, in the order of its entries; currency is
// that of entries that name none. Sums that 64 bits do not hold are cut to the greatest number.
func (j *Journal) Debits(currency string) []Money {
	var sums []Money
	for _, e := range j.Entries {
		if e.Amount <= 0 {
			continue
		}
		of := cmp.Or(e.Currency, currency)
		at := slices.IndexFunc(sums, func(m Money) bool { return m.Currency == of })
		if at < 0 {
			at = len(sums)
			sums = append(sums, Money{Currency: of})
		}
		if sums[at].Amount > math.MaxInt64-e.Amount {
			sums[at].Amount = math.MaxInt64
			continue
		}
		sums[at].Amount += e.Amount
	}
	return sums
}

// JournalEntry is one line of a journal entry.
type JournalEntry struct {
	// Account is the code of the account in the organization's chart.
	Account string `json:"account"`
	// Amount is in minor units: a debit is positive, a credit negative.
	Amount int64 `json:"amount"`
	// Currency is an ISO 4217 code; empty: the document's.
	Currency string `json:"currency,omitempty"`
	Note     string `json:"note,omitempty"`
	// Dimensions are the entry's, above those of the document.
	Dimensions Dimensions `json:"dimensions,omitempty"`
}

// Money is an amount in minor units with its currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}
