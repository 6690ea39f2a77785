package report

import (
	"math/big"
	"strings"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// Report is what a template prints.
type Report struct {
	// Kind is trial_balance, account_ledger or journal; Title is it in words.
	Kind, Title string
	// Organization is the organization's id, Name its name, or the id without one.
	Organization, Name string
	// Account is the account's code, and AccountName its name; empty: the report is about all.
	Account, AccountName string
	// From and To are the first and the last posting date, YYYY-MM-DD; empty: no limit.
	From, To string
	// MadeAt is when it was made, in UTC.
	MadeAt string
	// Tables has a table a currency; a journal has one for all.
	Tables []Table
}

// Span is the span of days in words.
func (r *Report) Span() string {
	switch {
	case r.From == "" && r.To == "":
		return "all days"
	case r.From == "":
		return "until " + r.To
	case r.To == "":
		return "from " + r.From
	default:
		return r.From + " to " + r.To
	}
}

// Rows counts the rows of all tables that are no totals.
func (r *Report) Rows() int64 {
	var n int64
	for i := range r.Tables {
		for _, row := range r.Tables[i].Rows {
			if row.Kind != Total {
				n++
			}
		}
	}
	return n
}

// Table is a table.
type Table struct {
	// Caption is the currency; empty: a column has it.
	Caption string
	Columns []Column
	Rows    []Row
}

// Column is a column of a table.
type Column struct {
	// ID is the name that Row.Cell takes, Title the heading.
	ID, Title string
	// Number: amounts, which stand to the right.
	Number bool
}

// RowKind says what a row is.
type RowKind string

// The rows that are not entries or accounts.
const (
	Opening RowKind = "opening"
	Closing RowKind = "closing"
	Total   RowKind = "total"
)

// Row is a row of a table.
type Row struct {
	Kind  RowKind
	Cells []Cell
}

// Cell returns the cell of a column; one without text if there is no such column.
func (r Row) Cell(id string) Cell {
	for _, c := range r.Cells {
		if c.Column == id {
			return c
		}
	}
	return Cell{}
}

// Cell is one value.
type Cell struct {
	// Column is the column's ID.
	Column string
	// Text is the value as it is printed; Value is an amount without blanks between the thousands,
	// and else equal.
	Text, Value string
	Number      bool
}

// add appends a row with the values of the columns, in their order.
func (t *Table) add(kind RowKind, values ...string) {
	row := Row{Kind: kind, Cells: make([]Cell, len(values))}
	for i, v := range values {
		c := t.Columns[i]
		row.Cells[i] = Cell{Column: c.ID, Text: v, Value: v, Number: c.Number}
		if c.Number {
			row.Cells[i].Text = grouped(v)
		}
	}
	t.Rows = append(t.Rows, row)
}

// grouped puts a no-break space between the thousands of a decimal number.
func grouped(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	text := phrase.Grouped(whole, "\u00A0")
	if fraction != "" {
		text += "." + fraction
	}
	return text
}

// decimal is an amount of minor units as a decimal number.
func decimal(amount *big.Int, currency string) string {
	digits, _ := models.MinorDigits(currency)
	text, sign := amount.String(), ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text, sign = rest, "-"
	}
	if digits == 0 {
		return sign + text
	}
	if short := digits + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	return sign + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

// TrialBalance fills in balances, a table a currency with its sums below.
func (r *Report) TrialBalance(balances []ledgerdb.SpanBalance) {
	r.Title = "Trial balance"
	columns := []Column{
		{ID: "account", Title: "Account"},
		{ID: "name", Title: "Name"},
		{ID: "type", Title: "Type"},
		{ID: "opening", Title: "Opening", Number: true},
		{ID: "debit", Title: "Debit", Number: true},
		{ID: "credit", Title: "Credit", Number: true},
		{ID: "closing", Title: "Closing", Number: true},
	}
	for len(balances) > 0 {
		currency := balances[0].Currency
		t := Table{Caption: currency, Columns: columns}
		var opening, debit, credit, closing big.Int
		for len(balances) > 0 && balances[0].Currency == currency {
			b := balances[0]
			t.add("", b.Account, b.Name, string(b.Type),
				decimal(b.Opening, currency), decimal(b.Debit, currency), decimal(b.Credit, currency),
				decimal(b.Closing, currency))
			opening.Add(&opening, b.Opening)
			debit.Add(&debit, b.Debit)
			credit.Add(&credit, b.Credit)
			closing.Add(&closing, b.Closing)
			balances = balances[1:]
		}
		t.add(Total, "Total", "", "", decimal(&opening, currency), decimal(&debit, currency), decimal(&credit, currency),
			decimal(&closing, currency))
		r.Tables = append(r.Tables, t)
	}
}

// AccountLedger fills in what was posted to the account, a table a currency, between its opening
// and its closing balance.
func (r *Report) AccountLedger(l ledgerdb.AccountLedger) {
	r.Title = "Account ledger"
	columns := []Column{
		{ID: "date", Title: "Date"},
		{ID: "document", Title: "Document"},
		{ID: "rule", Title: "Rule"},
		{ID: "debit", Title: "Debit", Number: true},
		{ID: "credit", Title: "Credit", Number: true},
		{ID: "balance", Title: "Balance", Number: true},
	}
	for _, b := range l.Balances {
		r.AccountName = b.Name
		t := Table{Caption: b.Currency, Columns: columns}
		t.add(Opening, r.From, "Opening balance", "", "", "", decimal(b.Opening, b.Currency))
		for i := range l.Lines {
			e := &l.Lines[i]
			if e.Currency != b.Currency {
				continue
			}
			debit, credit := sides(e.Side, e.Amount, e.Currency)
			t.add("", e.PostingDate.String(), e.DocumentID, e.RuleID, debit, credit, decimal(e.Balance, e.Currency))
		}
		t.add(Closing, r.To, "Closing balance", "", decimal(b.Debit, b.Currency), decimal(b.Credit, b.Currency),
			decimal(b.Closing, b.Currency))
		r.Tables = append(r.Tables, t)
	}
}

// sides is an amount in the column of its side.
func sides(side models.Side, amount int64, currency string) (debit, credit string) {
	text := decimal(big.NewInt(amount), currency)
	if side == models.Credit {
		return "", text
	}
	return text, ""
}
