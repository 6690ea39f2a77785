package answers

import (
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
	Kind         string    `json:"kind" enum:"account,section,total,result,earlier_result"`
	Currency     string    `json:"currency"`
	Type         string    `json:"type,omitempty" doc:"The type of the account or of the total; absent: of several types"`
	Section      string    `json:"section,omitempty"`
	Account      string    `json:"account,omitempty" doc:"Absent: the line is no account"`
	Name         string    `json:"name,omitempty"`
	AmountsMinor []Minor   `json:"amountsMinor" doc:"One a column, in minor units, positive on the side on which the type grows" example:"[\"1234\"]"`
	Amounts      []Decimal `json:"amounts" doc:"The same as decimal numbers" example:"[\"12.34\"]"`
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
				Name: l.Name, AmountsMinor: make([]Minor, len(l.Amounts)), Amounts: make([]Decimal, len(l.Amounts)),
			}
			for i, n := range l.Amounts {
				line.AmountsMinor[i], line.Amounts[i] = Amount(n, l.Currency)
			}
			return line
		}),
	}
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
	Currency     string  `json:"currency"`
	Account      string  `json:"account,omitempty" doc:"Absent: the total of the currency"`
	Name         string  `json:"name,omitempty"`
	OpeningMinor Minor   `json:"openingMinor" doc:"The balance before the first day, in minor units"`
	InMinor      Minor   `json:"inMinor" doc:"What was debited to the account"`
	OutMinor     Minor   `json:"outMinor" doc:"What was credited to it"`
	ClosingMinor Minor   `json:"closingMinor" doc:"The balance after the last day"`
	Opening      Decimal `json:"opening" doc:"The same as decimal numbers"`
	In           Decimal `json:"in"`
	Out          Decimal `json:"out"`
	Closing      Decimal `json:"closing"`
}

// CashStatementOf makes the answer of a statement of cash.
func CashStatementOf(s *models.CashStatement) CashStatement {
	return CashStatement{
		OrgID: s.OrgID, From: s.From.String(), To: s.To.String(),
		Lines: List(s.Lines, func(l *models.CashLine) CashLine {
			line := CashLine{Currency: l.Currency, Account: l.Account, Name: l.Name}
			line.OpeningMinor, line.Opening = Amount(l.Opening, l.Currency)
			line.InMinor, line.In = Amount(l.In, l.Currency)
			line.OutMinor, line.Out = Amount(l.Out, l.Currency)
			line.ClosingMinor, line.Closing = Amount(l.Closing, l.Currency)
			return line
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
	BaseMinor Minor   `json:"baseMinor,omitempty" doc:"What is taxed, in minor units, of what documents state; absent: the line is another"`
	Base      Decimal `json:"base,omitempty" doc:"The same as a decimal number"`
	Account   string  `json:"account,omitempty" doc:"The account with the role tax that it is posted to"`
	Name      string  `json:"name,omitempty"`
	TaxMinor  Minor   `json:"taxMinor" doc:"In minor units; positive in either direction of what documents state; of the other lines, where it is owed"`
	Tax       Decimal `json:"tax" doc:"The same as a decimal number"`
}

// VATDocument is a document whose taxes, as it states them, are not what is posted. Positive amounts
// are owed.
type VATDocument struct {
	DocumentID  string  `json:"documentId"`
	Currency    string  `json:"currency"`
	StatedMinor Minor   `json:"statedMinor" doc:"In minor units"`
	Stated      Decimal `json:"stated" doc:"The same as a decimal number"`
	PostedMinor Minor   `json:"postedMinor"`
	Posted      Decimal `json:"posted"`
}

// VATSummaryOf makes the answer of a VAT summary.
func VATSummaryOf(s *models.VATSummary) VATSummary {
	return VATSummary{
		OrgID: s.OrgID, From: s.From.String(), To: s.To.String(), More: s.More,
		Lines: List(s.Lines, func(l *models.VATLine) VATLine {
			line := VATLine{
				Kind: string(l.Kind), Currency: l.Currency, Direction: string(l.Direction), Country: l.Country,
				Category: l.Category, Code: l.Code, Rate: l.Rate, Documents: l.Documents, Account: l.Account, Name: l.Name,
			}
			line.TaxMinor, line.Tax = Amount(l.Tax, l.Currency)
			if l.Kind == models.VATStated {
				line.BaseMinor, line.Base = Amount(l.Base, l.Currency)
			}
			return line
		}),
		Documents: List(s.Documents, func(d *models.VATDifferentDocument) VATDocument {
			out := VATDocument{DocumentID: d.DocumentID, Currency: d.Currency}
			out.StatedMinor, out.Stated = Amount(d.Stated, d.Currency)
			out.PostedMinor, out.Posted = Amount(d.Posted, d.Currency)
			return out
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
	Currency    string  `json:"currency"`
	AmountMinor Minor   `json:"amountMinor" doc:"In minor units"`
	Amount      Decimal `json:"amount" doc:"The same as a decimal number"`
}

// YearEndOf makes the answer of a year-end close.
func YearEndOf(y *models.YearEnd) YearEnd {
	return YearEnd{
		DocumentID: y.DocumentID, Version: y.Version, Result: string(y.Result),
		Moved: List(y.Moved, func(r *models.YearResult) YearResult {
			out := YearResult{Currency: r.Currency}
			out.AmountMinor, out.Amount = Amount(r.Amount, r.Currency)
			return out
		}),
	}
}
