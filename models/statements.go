package models

import "math/big"

// StatementKind says which statement it is.
type StatementKind string

// The statements.
const (
	StatementBalance StatementKind = "balance"
	StatementIncome  StatementKind = "income"
	StatementCash    StatementKind = "cash"
	StatementVAT     StatementKind = "vat"
)

// Title is the statement in words.
func (k StatementKind) Title() string {
	switch k {
	case StatementBalance:
		return "Balance sheet"
	case StatementIncome:
		return "Income statement"
	case StatementCash:
		return "Statement of cash"
	case StatementVAT:
		return "VAT summary"
	}
	return string(k)
}

// StatementLineKind says what a line of a statement is.
type StatementLineKind string

// The lines.
const (
	// LineAccount is one account.
	LineAccount StatementLineKind = "account"
	// LineSection is the total of the accounts of a section.
	LineSection StatementLineKind = "section"
	// LineTotal is the total of a type, or of liabilities and equity.
	LineTotal StatementLineKind = "total"
	// LineResult is income less expense: of the statement's span, or of the year of the balance
	// sheet.
	LineResult StatementLineKind = "result"
	// LineEarlierResult is the income less the expense of earlier years that no year-end close has
	// moved to equity.
	LineEarlierResult StatementLineKind = "earlier_result"
)

// StatementColumn is what the amounts of a column are of.
type StatementColumn struct {
	// From and To are the first and the last posting date. A balance sheet has no From; no To is the
	// end of all that is posted.
	From, To Date
	// Value is the value of the dimension that the statement is split by; empty: what has none, or a
	// statement that is not split.
	Value string
	// Total says that the column has what all values come to.
	Total bool
}

// StatementLine is a line of a statement in one currency.
type StatementLine struct {
	Kind     StatementLineKind
	Currency string
	// Type is the account's, or that whose total the line is; empty: of several types.
	Type    AccountType
	Section string
	// Account is the account's code; empty: the line is no account.
	Account string
	Name    string
	// Amounts are in minor units, one for each column, and positive on the side on which the type
	// grows. They may be greater than 64 bits hold.
	Amounts []*big.Int
}

// Statement is a balance sheet or an income statement.
type Statement struct {
	Kind  StatementKind
	OrgID string
	// By is the dimension whose values are the columns; empty: the columns are spans of days.
	By string
	// WhereKey and WhereValue say that only entries with this value of a dimension count.
	WhereKey, WhereValue string
	Columns              []StatementColumn
	// Lines are in the order of their currencies, and of the statement.
	Lines []StatementLine
}

// CashLine is an account with the role cash, or the total of a currency (Account is empty), in
// minor units.
type CashLine struct {
	Currency, Account, Name string
	// Opening is the balance before the first day, In and Out what was posted to both sides since,
	// Closing the balance after the last day.
	Opening, In, Out, Closing *big.Int
}

// CashStatement is the money of an organization over a span of days.
type CashStatement struct {
	OrgID    string
	From, To Date
	Lines    []CashLine
}

// VATLineKind says what a line of a VAT summary is.
type VATLineKind string

// The lines.
const (
	// VATStated is what documents state, by direction, country, category, code and rate.
	VATStated VATLineKind = "stated"
	// VATStatedTotal is what is owed by that: the tax of sales less that of purchases.
	VATStatedTotal VATLineKind = "stated_total"
	// VATPosted is what is posted to an account with the role tax: credits less debits.
	VATPosted VATLineKind = "posted"
	// VATPostedTotal is the sum of what is posted.
	VATPostedTotal VATLineKind = "posted_total"
	// VATDifference is what is stated less what is posted.
	VATDifference VATLineKind = "difference"
)

// VATLine is a line of a VAT summary in one currency. Amounts are in minor units.
type VATLine struct {
	Kind     VATLineKind
	Currency string
	// Direction is whose tax it is: of sales (out) or of purchases (in). It and the fields to Base
	// are those of VATStated alone.
	Direction Direction
	Country   string
	Category  string
	Code      string
	Rate      string
	Documents int64
	Base      *big.Int
	// Account is the account's code, of VATPosted alone.
	Account string
	Name    string
	// Tax is positive in either direction of VATStated; of the other lines, where it is owed.
	Tax *big.Int
}

// VATDifferentDocument is a document whose taxes, as it states them, are not what is posted. Amounts
// are in minor units, and positive where they are owed.
type VATDifferentDocument struct {
	DocumentID string
	Currency   string
	Stated     *big.Int
	Posted     *big.Int
}

// VATSummary is the taxes of a span of posting dates.
type VATSummary struct {
	OrgID    string
	From, To Date
	Lines    []VATLine
	// Documents cause the differences, the greatest first. More says that there are others.
	Documents []VATDifferentDocument
	More      bool
}

// YearEndResult is what a year-end close, or its undo, came to.
type YearEndResult string

// The results.
const (
	// YearEndWritten: its document is written, and a worker posts it.
	YearEndWritten YearEndResult = "written"
	// YearEndUnchanged: its document is as it should be.
	YearEndUnchanged YearEndResult = "unchanged"
	// YearEndDeleted: its document is deleted, and a worker reverses what is posted of it.
	YearEndDeleted YearEndResult = "deleted"
	// YearEndNothing: there is nothing to move, or to undo.
	YearEndNothing YearEndResult = "nothing"
)

// YearEnd is a year-end close.
type YearEnd struct {
	DocumentID string
	// Version is the document's; 0: there is none.
	Version int64
	Result  YearEndResult
	// Moved is the result of the year that is moved, one a currency.
	Moved []YearResult
}

// YearResult is income less expense of a year in a currency, in minor units.
type YearResult struct {
	Currency string
	Amount   *big.Int
}
