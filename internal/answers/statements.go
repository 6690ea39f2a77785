package answers

import (
	"math/big"

	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

// Statement is a balance sheet or an income statement.
type Statement struct {
	OrgID      string            `json:"orgId"`
	Kind       string            `json:"kind" enum:"balance,income"`
	By         string            `json:"by,omitempty" doc:"The dimension whose values are the columns; absent: the columns are spans of days"`
	WhereKey   string            `json:"whereKey,omitempty" doc:"Only entries count that have a value of this dimension"`
	WhereValue string            `json:"whereValue,omitempty" doc:"The value; absent: the entries count that have none"`
	Columns    []StatementColumn `json:"columns"`
	Lines      []StatementLine   `json:"lines" doc:"By currency, in the order of the statement"`
}

// StatementColumn is what the amounts of a column are of.
type StatementColumn struct {
	From  string `json:"from,omitempty" format:"date" doc:"The first posting date; absent: from the beginning"`
	To    string `json:"to,omitempty" format:"date" doc:"The last posting date; absent: to the end"`
	Value string `json:"value,omitempty" doc:"The value of the dimension; absent: what has none"`
	Total bool   `json:"total,omitempty" doc:"Whether the column is what all values come to"`
}

// StatementLine is a line of a statement in one currency.
type StatementLine struct {
	Kind     string `json:"kind" enum:"account,section,total,result,earlier_result"`
	Currency string `json:"currency"`
	Type     string `json:"type,omitempty" doc:"The type of the account or of the total; absent: of several types"`
	Section  string `json:"section,omitempty"`
	Account  string `json:"account,omitempty" doc:"Absent: the line is no account"`
	Name     string `json:"name,omitempty"`
	// AmountsMinor are strings, for they may be greater than 64 bits hold.
	AmountsMinor []string `json:"amountsMinor" doc:"One a column, in minor units, positive on the side on which the type grows" example:"[\"1234\"]"`
	Amounts      []string `json:"amounts" doc:"The same as decimal numbers" example:"[\"12.34\"]"`
}

// StatementOf makes the answer of a statement.
func StatementOf(s *models.Statement) Statement {
	return Statement{
		OrgID: s.OrgID, Kind: string(s.Kind), By: s.By, WhereKey: s.WhereKey, WhereValue: s.WhereValue,
		Columns: List(s.Columns, func(c *models.StatementColumn) StatementColumn {
			return StatementColumn{From: c.From.String(), To: c.To.String(), Value: c.Value, Total: c.Total}
		}),
		Lines: List(s.Lines, func(l *models.StatementLine) StatementLine {
			line := StatementLine{
				Kind: string(l.Kind), Currency: l.Currency, Type: string(l.Type), Section: l.Section, Account: l.Account,
				Name: l.Name, AmountsMinor: []string{}, Amounts: []string{},
			}
			for _, amount := range l.Amounts {
				line.AmountsMinor = append(line.AmountsMinor, amount.String())
				line.Amounts = append(line.Amounts, minor.Decimal(amount, l.Currency))
			}
			return line
		}),
	}
}

// Amount is an amount in minor units and as a decimal number. It is a string, for it may be greater
// than 64 bits hold.
type Amount struct {
	Minor   string `json:"minor" example:"1234"`
	Decimal string `json:"decimal" example:"12.34"`
}

func amountOf(amount *big.Int, currency string) Amount {
	return Amount{amount.String(), minor.Decimal(amount, currency)}
}

// CashStatement is what the accounts with the role cash had, and what came in and went out.
type CashStatement struct {
	OrgID string     `json:"orgId"`
	From  string     `json:"from,omitempty" format:"date" doc:"The first day; absent: from the beginning"`
	To    string     `json:"to,omitempty" format:"date" doc:"The last day; absent: to the end"`
	Lines []CashLine `json:"lines"`
}

// CashLine is one account, or the total of a currency.
type CashLine struct {
	Currency string `json:"currency"`
	Account  string `json:"account,omitempty" doc:"Absent: the total of the currency"`
	Name     string `json:"name,omitempty"`
	Opening  Amount `json:"opening" doc:"The balance before the first day"`
	In       Amount `json:"in" doc:"What was debited to the account"`
	Out      Amount `json:"out" doc:"What was credited to it"`
	Closing  Amount `json:"closing" doc:"The balance after the last day"`
}

// CashStatementOf makes the answer of a statement of cash.
func CashStatementOf(s *models.CashStatement) CashStatement {
	return CashStatement{
		OrgID: s.OrgID, From: s.From.String(), To: s.To.String(),
		Lines: List(s.Lines, func(l *models.CashLine) CashLine {
			return CashLine{
				Currency: l.Currency, Account: l.Account, Name: l.Name,
				Opening: amountOf(l.Opening, l.Currency), In: amountOf(l.In, l.Currency),
				Out: amountOf(l.Out, l.Currency), Closing: amountOf(l.Closing, l.Currency),
			}
		}),
	}
}

// VATSummary is the taxes of a span of posting dates.
type VATSummary struct {
	OrgID     string        `json:"orgId"`
	From      string        `json:"from,omitempty" format:"date" doc:"The first day; absent: from the beginning"`
	To        string        `json:"to,omitempty" format:"date" doc:"The last day; absent: to the end"`
	Lines     []VATLine     `json:"lines"`
	Documents []VATDocument `json:"documents" doc:"Those that cause the differences, the greatest first"`
	More      bool          `json:"more" doc:"Whether there are others"`
}

// VATLine is a line of a VAT summary in one currency.
type VATLine struct {
	Kind      string  `json:"kind" enum:"stated,stated_total,posted,posted_total,difference"`
	Currency  string  `json:"currency"`
	Direction string  `json:"direction,omitempty" doc:"Whose tax documents state: out, of sales; in, of purchases"`
	Country   string  `json:"country,omitempty"`
	Category  string  `json:"category,omitempty"`
	Code      string  `json:"code,omitempty" doc:"How the category treats what is taxed, by the codes of EN 16931"`
	Rate      string  `json:"rate,omitempty" doc:"In percent" example:"19"`
	Documents int64   `json:"documents,omitempty" doc:"How many state it, less those that were taken back"`
	Base      *Amount `json:"base,omitempty"`
	Account   string  `json:"account,omitempty" doc:"The account with the role tax that it is posted to"`
	Name      string  `json:"name,omitempty"`
	Tax       Amount  `json:"tax" doc:"Positive in either direction of what documents state; of the other lines, where it is owed"`
}

// VATDocument is a document whose taxes, as it states them, are not what is posted. Positive amounts
// are owed.
type VATDocument struct {
	DocumentID string `json:"documentId"`
	Currency   string `json:"currency"`
	Stated     Amount `json:"stated"`
	Posted     Amount `json:"posted"`
}

// VATSummaryOf makes the answer of a VAT summary.
func VATSummaryOf(s *models.VATSummary) VATSummary {
	return VATSummary{
		OrgID: s.OrgID, From: s.From.String(), To: s.To.String(), More: s.More,
		Lines: List(s.Lines, func(l *models.VATLine) VATLine {
			line := VATLine{
				Kind: string(l.Kind), Currency: l.Currency, Direction: string(l.Direction), Country: l.Country,
				Category: l.Category, Code: l.Code, Rate: l.Rate, Documents: l.Documents, Account: l.Account, Name: l.Name,
				Tax: amountOf(l.Tax, l.Currency),
			}
			if l.Kind == models.VATStated {
				base := amountOf(l.Base, l.Currency)
				line.Base = &base
			}
			return line
		}),
		Documents: List(s.Documents, func(d *models.VATDifferentDocument) VATDocument {
			return VATDocument{
				DocumentID: d.DocumentID, Currency: d.Currency, Stated: amountOf(d.Stated, d.Currency),
				Posted: amountOf(d.Posted, d.Currency),
			}
		}),
	}
}

// YearEnd is a year-end close, or its undo.
type YearEnd struct {
	DocumentID string       `json:"documentId"`
	Version    int64        `json:"version,omitempty"`
	Result     string       `json:"result" enum:"written,unchanged,deleted,nothing" doc:"written: a worker posts it; deleted: a worker reverses it"`
	Moved      []YearResult `json:"moved"`
}

// YearResult is income less expense of a year in a currency.
type YearResult struct {
	Currency string `json:"currency"`
	Amount
}

// YearEndOf makes the answer of a year-end close.
func YearEndOf(y *models.YearEnd) YearEnd {
	return YearEnd{
		DocumentID: y.DocumentID, Version: y.Version, Result: string(y.Result),
		Moved: List(y.Moved, func(r *models.YearResult) YearResult {
			return YearResult{r.Currency, amountOf(r.Amount, r.Currency)}
		}),
	}
}
