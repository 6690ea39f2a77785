package posting

import "github.com/daybook-dev/daybook/models"

// Rule line ids of entries that no line of a rule makes: none may have one of them. Statements tell
// the last two by their names.
const (
	// RoundingLineID is the rule line id of the entry that takes a rounding difference.
	RoundingLineID = "rounding"
	// ExchangeLineID is the rule line id of the entries that take what was converted, one for each
	// currency.
	ExchangeLineID = "exchange"
	// YearEndLineID is the rule line id of the entries of a journal that is a year-end close: the
	// income statement leaves them out.
	YearEndLineID = "year-end"
	// ElsewhereLineID is the rule line id of the entries that mirror what another system has posted: the
	// VAT summary leaves out what the document of such a posting states.
	ElsewhereLineID = "posted-elsewhere"
)

// keptLines says what these ids are kept for.
var keptLines = map[string]string{
	RoundingLineID: "the rounding entry", ExchangeLineID: "the exchange entry",
	YearEndLineID:   "year-end closes",
	ElsewhereLineID: "mirrors of what another system has posted",
}

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
	// RuleLineID names the line of the rule that made the entry, or is RoundingLineID, ExchangeLineID,
	// YearEndLineID, ElsewhereLineID or, of another journal, JournalRuleID.
	RuleLineID string
	// DocumentLine is the position, from 1, in the document's list that the rule line ran over; 0: it
	// ran over none.
	DocumentLine int
	// Dimensions are what statements can be split by; nil: nothing. Entries may share one map: it must
	// not be changed.
	Dimensions models.Dimensions
}
