package posting

import "github.com/daybook-dev/daybook/models"

// Rule line ids of the entries that balance an impact. No line of a rule may have one of them.
const (
	// RoundingLineID is the rule line id of the entry that takes a rounding difference.
	RoundingLineID = "rounding"
	// ExchangeLineID is the rule line id of the entries that take what was converted, one for each
	// currency.
	ExchangeLineID = "exchange"
)

// Impact is everything that one document posts. Its entries balance in each currency.
type Impact struct {
	// RuleID is the rule that matched the document.
	RuleID string
	// DocumentDate is the document's issue date.
	DocumentDate models.Date
	// PostingDate is the result of the rule's date expression; the impact belongs to the period of
	// this date.
	PostingDate models.Date
	// Entries is in the order of the rule's lines; the exchange or rounding entries come last.
	// Entries of zero are left out.
	Entries []Entry
	// NoEntries is why there is no entry; empty: there are some. A document that states an amount has
	// entries, unless its rule says that it posts nothing.
	NoEntries models.NoEntries
}

// Entry is one line of an impact.
type Entry struct {
	// Account is the code of the account in the organization's chart.
	Account string
	// Side is the side of the account that the amount stands on.
	Side models.Side
	// Amount is in minor units of Currency and greater than zero: a negative amount stands on the
	// other side.
	Amount int64
	// Currency is an ISO 4217 code.
	Currency string
	// RuleLineID names the line of the rule that made the entry, or is RoundingLineID or
	// ExchangeLineID.
	RuleLineID string
	// DocumentLine is the position, from 1, in the document's list that the rule line ran over; 0: it
	// ran over none.
	DocumentLine int
	// Dimensions are what statements can be split by; nil: nothing. Entries may share one map: it must
	// not be changed.
	Dimensions models.Dimensions
}
