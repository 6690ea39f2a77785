package report

import (
	"cmp"
	"math/big"
	"strconv"

	"github.com/daybook-dev/daybook/models"
)

// The rows of statements that are not accounts.
const (
	Section RowKind = "section"
	Result  RowKind = "result"
)

// Statement is a report of a balance sheet or an income statement.
func Statement(s *models.Statement) *Report {
	r := &Report{Kind: string(s.Kind), Title: s.Kind.Title(), Organization: s.OrgID, Name: s.OrgID}
	if len(s.Columns) > 0 {
		r.From, r.To = s.Columns[0].From.String(), s.Columns[0].To.String()
	}
	if s.WhereKey != "" {
		r.Title += ", " + s.WhereKey + " " + cmp.Or(s.WhereValue, "none")
	}
	columns := []Column{
		{ID: "account", Title: "Account"},
		{ID: "name", Title: "Name"},
		{ID: "type", Title: "Type"},
		{ID: "section", Title: "Section"},
	}
	for i, c := range s.Columns {
		columns = append(columns, Column{ID: "amount_" + strconv.Itoa(i+1), Title: ColumnTitle(s, c), Number: true})
	}
	for _, l := range s.Lines {
		kind := RowKind("")
		switch l.Kind {
		case models.LineSection:
			kind = Section
		case models.LineTotal:
			kind = Total
		case models.LineResult, models.LineEarlierResult:
			if kind = ""; l.Type == "" {
				kind = Result
			}
		case models.LineAccount:
		}
		values := []string{l.Account, l.Name, string(l.Type), l.Section}
		for _, amount := range l.Amounts {
			values = append(values, decimal(amount, l.Currency))
		}
		r.table(l.Currency, columns).add(kind, values...)
	}
	return r
}

// ColumnTitle is the heading of a column of a statement.
func ColumnTitle(s *models.Statement, c models.StatementColumn) string {
	switch {
	case c.Total:
		return "All"
	case s.By != "":
		return cmp.Or(c.Value, "none")
	}
	return (&Report{From: c.From.String(), To: c.To.String()}).Span()
}

// table is the table of a currency, which is the last one or a new one.
func (r *Report) table(currency string, columns []Column) *Table {
	if n := len(r.Tables); n == 0 || r.Tables[n-1].Caption != currency {
		r.Tables = append(r.Tables, Table{Caption: currency, Columns: columns})
	}
	return &r.Tables[len(r.Tables)-1]
}

// CashStatement is a report of the money of an organization.
func CashStatement(s *models.CashStatement) *Report {
	r := &Report{
		Kind: string(models.StatementCash), Title: models.StatementCash.Title(), Organization: s.OrgID, Name: s.OrgID,
		From: s.From.String(), To: s.To.String(),
	}
	columns := []Column{
		{ID: "account", Title: "Account"},
		{ID: "name", Title: "Name"},
		{ID: "opening", Title: "Opening", Number: true},
		{ID: "in", Title: "In", Number: true},
		{ID: "out", Title: "Out", Number: true},
		{ID: "closing", Title: "Closing", Number: true},
	}
	for _, l := range s.Lines {
		kind := RowKind("")
		if l.Account == "" {
			kind = Total
		}
		values := []string{l.Account, l.Name}
		for _, amount := range []*big.Int{l.Opening, l.In, l.Out, l.Closing} {
			values = append(values, decimal(amount, l.Currency))
		}
		r.table(l.Currency, columns).add(kind, values...)
	}
	return r
}

// VATSummary is a report of the taxes of a span of days: what documents state and what is posted.
func VATSummary(s *models.VATSummary) *Report {
	r := &Report{
		Kind: string(models.StatementVAT), Title: models.StatementVAT.Title(), Organization: s.OrgID, Name: s.OrgID,
		From: s.From.String(), To: s.To.String(),
	}
	columns := []Column{
		{ID: "tax_of", Title: "Tax of"},
		{ID: "country", Title: "Country"},
		{ID: "category", Title: "Category"},
		{ID: "code", Title: "Code"},
		{ID: "rate", Title: "Rate", Number: true},
		{ID: "account", Title: "Account"},
		{ID: "documents", Title: "Documents", Number: true},
		{ID: "base", Title: "Base", Number: true},
		{ID: "tax", Title: "Tax", Number: true},
	}
	for i := range s.Lines {
		l := &s.Lines[i]
		tax := decimal(l.Tax, l.Currency)
		t := r.table(l.Currency, columns)
		switch l.Kind {
		case models.VATStated:
			t.add("", TaxOf(l.Direction), l.Country, l.Category, l.Code, l.Rate, "", strconv.FormatInt(l.Documents, 10),
				decimal(l.Base, l.Currency), tax)
		case models.VATPosted:
			t.add("", l.Name, "", "", "", "", l.Account, "", "", tax)
		case models.VATDifference:
			t.add(Result, l.Name, "", "", "", "", "", "", "", tax)
		case models.VATStatedTotal, models.VATPostedTotal:
			t.add(Total, l.Name, "", "", "", "", "", "", "", tax)
		}
	}
	return r
}

// TaxOf says whose tax a direction is.
func TaxOf(d models.Direction) string {
	if d == models.DirectionIn {
		return "purchases"
	}
	return "sales"
}
