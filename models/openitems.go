package models

import (
	"math/big"
	"time"
)

// MatchedBy says how documents were found to belong together.
type MatchedBy string

// The ways.
const (
	// MatchedByHand: a person put them together.
	MatchedByHand MatchedBy = "hand"
	// MatchedByReference: one refers to the other (Content.RefersTo).
	MatchedByReference MatchedBy = "reference"
	// MatchedByNumber: a payment names the number of the other, and the amount is equal.
	MatchedByNumber MatchedBy = "number"
	// MatchedByAmount: the counterparty and the amount are equal, and no other item fits.
	MatchedByAmount MatchedBy = "amount"
)

// OpenItem is what one document has on one account of receivables, payables or advances, in one
// currency, on a day. Amounts are debits less credits, in minor units: what a customer owes is
// positive, what a supplier is owed negative.
type OpenItem struct {
	DocumentID string
	Account    string
	Currency   string
	// Role is the account's.
	Role AccountRole
	// Type and Direction are empty, and Number and Counterparty too, of a document that an
	// application keeps in a table of its own. Counterparty is that of its group if it has none
	// itself.
	Type         DocumentType
	Direction    Direction
	Number       string
	Counterparty string
	IssueDate    Date
	// DueDate is zero for a document that has none.
	DueDate Date
	// Amount is what the document has posted on the account, Open what of it is open: in a group,
	// credits pay debits, the oldest first.
	Amount *big.Int
	Open   *big.Int
	// GroupID is the group that the document is in; 0: none.
	GroupID int64
}

// Reconciled is one row of daybook.reconciled: a document that is in a group.
type Reconciled struct {
	DocumentID string
	GroupID    int64
	MatchedBy  MatchedBy
	Reason     string
	// Actor is who put the document into the group.
	Actor     string
	CreatedAt time.Time
}

// Match is a pair of documents that were found to belong together.
type Match struct {
	DocumentID string
	OtherID    string
	MatchedBy  MatchedBy
	// GroupID is the group that both are in now; 0: it was a dry run.
	GroupID  int64
	Account  string
	Currency string
	// Amount is what was open of the first one, in minor units, not negative.
	Amount *big.Int
}

// Aged is what is open on a day of a counterparty, on an account, in a currency, and how long it has
// been due. Amounts are debits less credits, in minor units.
type Aged struct {
	Counterparty string
	Account      string
	Role         AccountRole
	Currency     string
	// Items is how many there are.
	Items int64
	Open  *big.Int
	// NotDue is due on the day or later, Due30 has been for 1 to 30 days, Due60 for 31 to 60, Due90
	// for 61 to 90, Longer for more than 90. What has no due date is due on the issue date.
	NotDue, Due30, Due60, Due90, Longer *big.Int
}

// CounterpartyLine is a line of a counterparty's statement: what an impact has posted on an account.
// Amounts are debits less credits, in minor units.
type CounterpartyLine struct {
	// PostingDate is zero, and ImpactID and DocumentID too, of the balance before the first day.
	PostingDate Date
	ImpactID    int64
	DocumentID  string
	Type        DocumentType
	Number      string
	IssueDate   Date
	DueDate     Date
	Account     string
	Currency    string
	Amount      *big.Int
	// Balance is that of the counterparty on the account after it.
	Balance *big.Int
	// Open is what is open of the document on the last day.
	Open *big.Int
}

// CurrencyRate is one row of daybook.rates: what a currency was worth in an organization's own one
// from a day on, until the next rate.
type CurrencyRate struct {
	Currency string
	ValidOn  Date
	// Rate is a decimal number: units of the own currency for one of Currency, such as 0.92.
	Rate string
	// Source is where the rate is from, such as a central bank.
	Source string
	// Actor is who set it.
	Actor string
}

// ExchangeDifference is what two items in another currency that pay each other in a group have won
// or lost by rates.
type ExchangeDifference struct {
	GroupID                       int64
	Account                       string
	Currency                      string
	DebitDocument, CreditDocument string
	DebitDay, CreditDay           Date
	// Amount is in minor units of Currency.
	Amount *big.Int
	// DebitRate and CreditRate are those of the two days; empty: there is none.
	DebitRate, CreditRate string
	// Difference is in minor units of the own currency, positive where it is a gain; nil: a rate is
	// missing.
	Difference *big.Int
}

// ItemSum is what is open on an account in a currency: debits less credits, in minor units.
type ItemSum struct {
	Account  string
	Currency string
	Open     *big.Int
}

// ItemGroup is a group of documents that belong together.
type ItemGroup struct {
	// ID is its number.
	ID        int64
	Documents []Reconciled
	// Items are those of its documents, the oldest first, also those of which nothing is open.
	Items []OpenItem
	// Open has each account and currency of its items, in that order. Closed says that nothing is
	// open of any of them.
	Open   []ItemSum
	Closed bool
}

// Exchange is what was won and lost by rates until a day.
type Exchange struct {
	// Currency is the organization's own; amounts below are in its minor units.
	Currency string
	// Differences are those of items that pay each other in a group.
	Differences []ExchangeDifference
	// Realised is the sum of the differences: positive is a gain.
	Realised *big.Int
	// Missing counts the differences of which a rate is missing.
	Missing int
	// Accounts are the adjustment, gain and loss account of the booking before; nil: there was none.
	Accounts []string
	// Booked is what stands on that adjustment account until the day, ToBook what is missing of
	// Realised there. nil: nothing was booked yet.
	Booked, ToBook *big.Int
}
