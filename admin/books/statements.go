package books

import (
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Compare says what a statement is compared with.
type Compare string

// What a statement is compared with.
const (
	// CompareNothing: the statement has one column.
	CompareNothing Compare = ""
	// ComparePrevious: the span of the same length before; of a balance sheet the end of the month
	// before.
	ComparePrevious Compare = "previous"
	// CompareYear: the same days a year before.
	CompareYear Compare = "year"
)

// StatementOptions says what a statement counts. The zero value counts all that is posted.
type StatementOptions struct {
	// From and To are the first and the last posting date; no date: no limit. A balance sheet has To
	// alone.
	From, To models.Date
	// Compare adds a column of earlier days. It needs To, and of an income statement From as well.
	Compare Compare
	// By is a dimension, such as "cost_centre": the statement has a column for each of its values,
	// for what has none, and for all. It goes with no comparison.
	By string
	// WhereKey is a dimension of which only entries with WhereValue count; with an empty WhereValue
	// those that have none. Empty: all count.
	WhereKey, WhereValue string
}

// BalanceSheet is what an organization has, owes and owns at the end of a day, with the totals of
// the accounts' sections and types. Assets equal liabilities and equity: what no year-end close has
// moved of income and expense is a line of equity. Errors: ErrInvalid, ErrDimensionNotFound,
// ErrOrganizationNotFound.
func BalanceSheet(ctx context.Context, db DB, org string, o StatementOptions) (models.Statement, error) {
	o.From = models.Date{}
	return statement(ctx, db, models.StatementBalance, org, o)
}

// IncomeStatement is what an organization earned and spent in a span of days, with the totals of
// the accounts' sections and types. What a year-end close moved is left out. Errors: ErrInvalid,
// ErrDimensionNotFound, ErrOrganizationNotFound.
func IncomeStatement(ctx context.Context, db DB, org string, o StatementOptions) (models.Statement, error) {
	return statement(ctx, db, models.StatementIncome, org, o)
}

// CashOptions says what a statement of cash counts. The zero value counts all that is posted.
type CashOptions struct {
	// From and To are the first and the last posting date; no date: no limit.
	From, To models.Date
}

// CashStatement is what the accounts with the role cash had before a span of days, what was posted
// to both of their sides in it, and what they had after it. Errors: ErrInvalid,
// ErrOrganizationNotFound.
func CashStatement(ctx context.Context, db DB, org string, o CashOptions) (models.CashStatement, error) {
	if err := checkSpan(o.From, o.To); err != nil {
		return models.CashStatement{}, err
	}
	if err := readable(ctx, db, org); err != nil {
		return models.CashStatement{}, err
	}
	return ledgerdb.ReadCashStatement(ctx, db, org, o.From, o.To)
}

func statement(ctx context.Context, db DB, kind models.StatementKind, org string, o StatementOptions,
) (models.Statement, error) {
	f := ledgerdb.StatementFilter{OrgID: org, By: o.By, WhereKey: o.WhereKey, WhereValue: o.WhereValue}
	var err error
	if f.Columns, err = o.columns(kind); err != nil {
		return models.Statement{}, err
	}
	if err := readable(ctx, db, org); err != nil {
		return models.Statement{}, err
	}
	return ledgerdb.ReadStatement(ctx, db, kind, f)
}

func checkSpan(from, to models.Date) error {
	if !from.IsZero() && !to.IsZero() && to.Before(from) {
		return store.Invalid("the last day %s is before the first, %s", to, from)
	}
	return nil
}

// columns are the spans that a statement is of.
func (o *StatementOptions) columns(kind models.StatementKind) ([]models.StatementColumn, error) {
	if err := checkSpan(o.From, o.To); err != nil {
		return nil, err
	}
	for _, text := range []string{o.By, o.WhereKey, o.WhereValue} {
		if !store.ValidText(text) {
			return nil, store.Refuse(ErrInvalid, "the name or the value of the dimension is no text", "")
		}
	}
	if o.WhereKey == "" && o.WhereValue != "" {
		return nil, store.Refuse(ErrInvalid, "there is a value and no dimension", "name the dimension")
	}
	now := models.StatementColumn{From: o.From, To: o.To}
	if o.Compare == CompareNothing {
		return []models.StatementColumn{now}, nil
	}
	switch {
	case o.Compare != ComparePrevious && o.Compare != CompareYear:
		return nil, store.Refuse(ErrInvalid, fmt.Sprintf("a statement cannot be compared with %q", o.Compare),
			fmt.Sprintf("compare with %s or %s", ComparePrevious, CompareYear))
	case o.By != "":
		return nil, store.Refuse(ErrInvalid, "a statement is either compared or split by a dimension", "")
	case o.To.IsZero() || kind == models.StatementIncome && o.From.IsZero():
		return nil, store.Refuse(ErrInvalid, "a statement that is compared needs its days", "name a period, or the days")
	}
	return []models.StatementColumn{now, before(now, o.Compare)}, nil
}

// before is the span that a statement is compared with. Whole months are compared with whole
// months.
func before(c models.StatementColumn, compare Compare) models.StatementColumn {
	months := 12
	whole := lastOfMonth(c.To) && (c.From.IsZero() || c.From.Time().Day() == 1)
	if compare == ComparePrevious {
		months = 1
		switch {
		case c.From.IsZero():
		case whole:
			first, last := c.From.Time(), c.To.Time()
			months = (last.Year()-first.Year())*12 + int(last.Month()-first.Month()) + 1
		default:
			length := int(c.To.Time().Sub(c.From.Time()).Hours()/24) + 1
			return models.StatementColumn{From: c.From.AddDays(-length), To: c.From.AddDays(-1)}
		}
	}
	earlier := models.StatementColumn{To: monthsBefore(c.To, months, whole)}
	if !c.From.IsZero() {
		earlier.From = monthsBefore(c.From, months, false)
	}
	return earlier
}

func lastOfMonth(d models.Date) bool { return d.AddDays(1).Time().Day() == 1 }

// monthsBefore is the same day so many months before, or the last one of that month if it is
// shorter, or last says so.
func monthsBefore(d models.Date, months int, last bool) models.Date {
	t := d.Time()
	first := models.NewDate(t.Year(), t.Month(), 1).Time().AddDate(0, -months, 0)
	end := first.AddDate(0, 1, -1).Day()
	if last || t.Day() > end {
		return models.NewDate(first.Year(), first.Month(), end)
	}
	return models.NewDate(first.Year(), first.Month(), t.Day())
}

// vatDocuments is how many of the documents that cause a difference a VAT summary names.
const vatDocuments = 100

// VATOptions says what a VAT summary counts. The zero value counts all that is posted.
type VATOptions struct {
	// From and To are the first and the last posting date; no date: no limit.
	From, To models.Date
}

// VATSummary is the taxes of a span of posting dates: as documents state them by direction, country,
// category, code and rate, as they are posted to accounts with the role tax, and the difference, with
// at most 100 of the documents that cause it. Only documents of the table daybook.documents state
// taxes here; what those of other sources post is a difference. Errors: ErrInvalid,
// ErrOrganizationNotFound.
func VATSummary(ctx context.Context, db DB, org string, o VATOptions) (models.VATSummary, error) {
	if err := checkSpan(o.From, o.To); err != nil {
		return models.VATSummary{}, err
	}
	if err := readable(ctx, db, org); err != nil {
		return models.VATSummary{}, err
	}
	return ledgerdb.ReadVATSummary(ctx, db, org, o.From, o.To, vatDocuments)
}
