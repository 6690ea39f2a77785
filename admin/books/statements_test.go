package books_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// vatText is a VAT summary in a line a line of it.
func (b *bundle) vatText(month models.Period) string {
	b.t.Helper()
	s, err := books.VATSummary(b.t.Context(), b.Pool, org, books.VATOptions{From: month.StartsOn, To: month.EndsOn})
	require.NoError(b.t, err)
	var out strings.Builder
	for _, l := range s.Lines {
		switch l.Kind {
		case models.VATStated:
			fmt.Fprintf(&out, "%s %s %s %s: %d, %s, %s\n", l.Direction, l.Country, l.Category, l.Rate, l.Documents, l.Base, l.Tax)
		case models.VATPosted:
			fmt.Fprintf(&out, "%s: %s\n", l.Account, l.Tax)
		case models.VATStatedTotal, models.VATPostedTotal, models.VATDifference:
			fmt.Fprintf(&out, "%s: %s\n", l.Kind, l.Tax)
		}
	}
	for _, d := range s.Documents {
		fmt.Fprintf(&out, "%s states %s, posted %s\n", d.DocumentID, d.Stated, d.Posted)
	}
	return out.String()
}

// A document that is corrected after its month was closed counts there as it was, and is taken back
// and stated anew in the month in which the correction is posted; also when the closed month is
// opened and closed again.
func TestVATSummaryOfCorrections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march, april := books.Month(2026, 3), books.Month(2026, 4)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march, april))
	_, err := books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)
	require.NoError(t, err)
	write := func(id string, net int64, change func(d *models.Document)) {
		d := fixture.Invoice(org, id, net)
		d.Content.Country = "DE"
		change(d)
		fixture.Ready(t, b.Pool, d)
		b.work()
	}
	plain := func(*models.Document) {}
	write("a", 1000, plain)
	write("b", 2000, plain)
	write("credit", 100, func(d *models.Document) { d.Type = models.DocumentCreditNote })
	const before = "out DE VAT 19: 3, 2900, 551\nstated_total: 551\n3800: 551\nposted_total: 551\ndifference: 0\n"
	assert.Equal(t, before, b.vatText(march))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	assert.Equal(t, before, b.vatText(march), "closed")

	write("a", 3000, plain)
	assert.Equal(t, before, b.vatText(march), "what was closed stays")
	const corrected = "out DE VAT 19: 0, 2000, 380\nstated_total: 380\n3800: 380\nposted_total: 380\ndifference: 0\n"
	assert.Equal(t, corrected, b.vatText(april))
	half := models.Period{StartsOn: march.StartsOn, EndsOn: models.NewDate(2026, 3, 14)}
	assert.Equal(t, before, b.vatText(half), "part of a closed month")

	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	assert.Equal(t, before, b.vatText(march), "opened")
	write("b", 500, plain) // in March again
	const opened = "out DE VAT 19: 3, 1400, 266\nstated_total: 266\n3800: 266\nposted_total: 266\ndifference: 0\n"
	assert.Equal(t, opened, b.vatText(march))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	assert.Equal(t, opened, b.vatText(march), "closed again")
	assert.Equal(t, corrected, b.vatText(april))
}

// What is posted to an account with the role tax, and no document states, is a difference, which
// names the document; also of a closed month, and after an account has got the role.
func TestVATSummaryNamesDifferences(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "a", 1000), &models.Document{
		OrgID: org, ID: "paid", Type: models.DocumentJournal, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, 20),
		Content: models.Content{Journal: &models.Journal{Reason: "tax of February", By: "ada", Entries: []models.JournalEntry{
			{Account: "3800", Amount: 700}, {Account: "1000", Amount: -700},
		}}},
	})
	b.work()
	const want = "out  VAT 19: 1, 1000, 190\nstated_total: 190\n3800: -510\nposted_total: -510\ndifference: 700\npaid states 0, posted -700\n"
	assert.Equal(t, want, b.vatText(march))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	assert.Equal(t, want, b.vatText(march), "closed")
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `UPDATE daybook.accounts SET role = 'tax' WHERE org_id = $1 AND code = '1000'`, org)
		require.NoError(t, err)
	})
	assert.Equal(t, "out  VAT 19: 1, 1000, 190\nstated_total: 190\n1000: 700\n3800: -510\nposted_total: 190\ndifference: 0\n",
		b.vatText(march), "by the accounts of today both sides of the journal are taxes")
}

// A statement is compared with the span or the year before, and split by the values of a dimension.
func TestStatementColumns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 2), books.Month(2026, 3)))
	for i, day := range []models.Date{models.NewDate(2025, 3, 31), models.NewDate(2026, 2, 28), models.NewDate(2026, 3, 1)} {
		d := fixture.Invoice(org, fmt.Sprint("inv-", i), int64(1000*(i+1)))
		d.IssueDate = day
		fixture.Ready(t, b.Pool, d)
	}
	b.work()
	march := books.Month(2026, 3)
	sales := func(o books.StatementOptions) (amounts []string) {
		t.Helper()
		s, err := books.IncomeStatement(ctx, b.Pool, org, o)
		require.NoError(t, err)
		for _, l := range s.Lines {
			if l.Kind == models.LineResult {
				for i, a := range l.Amounts {
					amounts = append(amounts, fmt.Sprintf("%s%s..%s %s", s.Columns[i].Value, s.Columns[i].From, s.Columns[i].To, a))
				}
			}
		}
		return amounts
	}
	assert.Equal(t, []string{"2026-03-01..2026-03-31 3000", "2026-02-01..2026-02-28 2000"},
		sales(books.StatementOptions{From: march.StartsOn, To: march.EndsOn, Compare: books.ComparePrevious}))
	assert.Equal(t, []string{"2026-03-01..2026-03-31 3000", "2025-03-01..2025-03-31 1000"},
		sales(books.StatementOptions{From: march.StartsOn, To: march.EndsOn, Compare: books.CompareYear}))
	assert.Equal(t, []string{"2026-03-01..2026-03-02 3000", "2026-02-27..2026-02-28 2000"},
		sales(books.StatementOptions{From: models.NewDate(2026, 3, 1), To: models.NewDate(2026, 3, 2), Compare: books.ComparePrevious}))
	sheet, err := books.BalanceSheet(ctx, b.Pool, org, books.StatementOptions{To: models.NewDate(2026, 2, 28), Compare: books.CompareYear})
	require.NoError(t, err)
	assert.Equal(t, "2025-02-28", sheet.Columns[1].To.String())
	assertBalanced(t, sheet)
	var names []string
	for _, l := range sheet.Lines {
		names = append(names, l.Name)
	}
	assert.Equal(t, []string{
		"Accounts receivable", "Total Current assets", "Total assets", "Output tax", "Total Current liabilities", "Total liabilities",
		"Result of earlier years", "Result of the year", "Total equity", "Total liabilities and equity",
	}, names)

	// As the ledger will write it.
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `
ALTER TABLE daybook.entries DISABLE TRIGGER entries_append_only;
UPDATE daybook.entries SET dimensions = jsonb_build_object('cost_centre', 'c' || impact_id % 2) WHERE impact_id % 3 > 0;
ALTER TABLE daybook.entries ENABLE TRIGGER entries_append_only`)
		require.NoError(t, err)
	})
	by := books.StatementOptions{By: "cost_centre"}
	split := sales(by)
	require.Len(t, split, 4)
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	assert.Equal(t, split, sales(by), "closed")
	by.WhereKey, by.WhereValue = "cost_centre", "c1"
	assert.Len(t, sales(by), 2)

	for _, o := range []books.StatementOptions{
		{Compare: "week", From: march.StartsOn, To: march.EndsOn},
		{Compare: books.CompareYear},
		{From: march.EndsOn, To: march.StartsOn},
		{Compare: books.CompareYear, By: "x", From: march.StartsOn, To: march.EndsOn},
		{By: "\x00"},
	} {
		_, err := books.IncomeStatement(ctx, b.Pool, org, o)
		require.ErrorIs(t, err, store.ErrInvalid, o)
	}
}

// A year-end close moves the result to equity, follows what is posted later, and can be taken back;
// the income statement stays as it is.
func TestCloseYear(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.retains()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2025, 12)))
	sell := func(id string, net int64) {
		d := fixture.Invoice(org, id, net)
		d.IssueDate = models.NewDate(2025, 12, 30)
		fixture.Ready(t, b.Pool, d)
		b.work()
	}
	figures := func() (out string) {
		t.Helper()
		last := models.NewDate(2025, 12, 31)
		sheet, err := books.BalanceSheet(ctx, b.Pool, org, books.StatementOptions{To: last})
		require.NoError(t, err)
		assertBalanced(t, sheet)
		income, err := books.IncomeStatement(ctx, b.Pool, org, books.StatementOptions{From: models.NewDate(2025, 1, 1), To: last})
		require.NoError(t, err)
		for _, l := range append(sheet.Lines, income.Lines...) {
			if l.Account == "2900" || l.Kind == models.LineResult {
				out += fmt.Sprintf("%s %s; ", l.Name, l.Amounts[0])
			}
		}
		return out
	}
	closeYear := func(o books.CloseYearOptions) models.YearEndResult {
		t.Helper()
		done, err := books.CloseYear(ctx, b.Pool, org, 2025, o)
		require.NoError(t, err)
		b.work()
		return done.Result
	}
	to := books.CloseYearOptions{To: "2900"}
	assert.Equal(t, models.YearEndNothing, closeYear(to))
	sell("a", 1000)
	assert.Equal(t, models.YearEndWritten, closeYear(to))
	assert.Equal(t, "Retained earnings 1000; Result 1000; ", figures())
	assert.Equal(t, models.YearEndUnchanged, closeYear(to))
	sell("b", 500)
	assert.Equal(t, "Retained earnings 1000; Result of the year 500; Result 1500; ", figures())
	assert.Equal(t, models.YearEndWritten, closeYear(to))
	assert.Equal(t, "Retained earnings 1500; Result 1500; ", figures())

	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2025, 12), books.CloseOptions{})))
	assert.Equal(t, "Retained earnings 1500; Result 1500; ", figures(), "closed")
	for _, o := range []books.CloseYearOptions{to, {Undo: true}} {
		_, err := books.CloseYear(ctx, b.Pool, org, 2025, o)
		require.ErrorIs(t, err, books.ErrPeriodClosed)
		require.ErrorContains(t, err, "is closed")
	}
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, books.Month(2025, 12), books.OpenOptions{})))
	assert.Equal(t, models.YearEndDeleted, closeYear(books.CloseYearOptions{Undo: true}))
	assert.Equal(t, "Result of the year 1500; Result 1500; ", figures())
	assert.Equal(t, models.YearEndNothing, closeYear(books.CloseYearOptions{Undo: true}))
	assert.Equal(t, models.YearEndWritten, closeYear(to), "closed anew")
	assert.Equal(t, "Retained earnings 1500; Result 1500; ", figures())
	_, err := books.CloseYear(ctx, b.Pool, org, 2025, books.CloseYearOptions{To: "1200"})
	require.ErrorIs(t, err, books.ErrInvalid)
}

// A number that is none, in a content that an application wrote, keeps no month from being closed.
func TestTaxesThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, march))
	b.posted("odd", models.NewDate(2026, 3, 3))
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.documents SET content = content || '{"taxes": [{"category": "VAT", "rate": "19 %", "base": "1e999999", "amount": "some"}]}' WHERE id = 'odd'`)
	require.NoError(t, err)
	_, err = books.VATSummary(t.Context(), b.Pool, org, books.VATOptions{From: march.StartsOn, To: march.EndsOn})
	require.NoError(t, err)
	require.NoError(t, second(books.ClosePeriod(t.Context(), b.Pool, org, march, books.CloseOptions{})))
	// What was posted is kept, so the audit finds nothing to say about what is written over it.
	for _, taxes := range []string{`[{"base": "1e999999", "amount": "some"}]`, `[{"base": 7, "amount": 1}]`} {
		_, err = b.Pool.Exec(t.Context(), `UPDATE daybook.documents SET content = content || jsonb_build_object('taxes', $1::jsonb) WHERE id = 'odd'`, taxes)
		require.NoError(t, err)
		assert.Empty(t, b.findings(), taxes)
	}
}

// A key that no entry of the organization has is refused with those that they have, also when all
// days are closed.
func TestAnUnknownDimensionIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	refuses := func(o books.StatementOptions, says string) {
		t.Helper()
		for _, statement := range []func(context.Context, books.DB, string, books.StatementOptions) (models.Statement, error){
			books.BalanceSheet, books.IncomeStatement,
		} {
			_, err := statement(ctx, b.Pool, org, o)
			require.ErrorIs(t, err, books.ErrDimensionNotFound)
			require.ErrorContains(t, err, says)
		}
	}
	refuses(books.StatementOptions{By: "cost"}, "they have none")
	d := fixture.Invoice(org, "a", 1000)
	d.Content.Dimensions = models.Dimensions{"cost": "sales", "project": "7"}
	fixture.Ready(t, b.Pool, d)
	b.work()
	check := func() {
		t.Helper()
		refuses(books.StatementOptions{By: "Cost"}, "cost, project")
		refuses(books.StatementOptions{WhereKey: "costs", To: models.NewDate(2020, 1, 1)}, "cost, project")
		for _, day := range []models.Date{{}, models.NewDate(2020, 1, 1)} {
			_, err := books.IncomeStatement(ctx, b.Pool, org, books.StatementOptions{By: "project", WhereKey: "cost", To: day})
			require.NoError(t, err)
		}
	}
	check()
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	check()
}

func TestAValueNeedsADimension(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := books.IncomeStatement(t.Context(), b.Pool, org, books.StatementOptions{WhereValue: "sales"})
	require.ErrorIs(t, err, books.ErrInvalid)
}

// A document of another kind that has the id of a year-end close is neither replaced nor deleted.
func TestCloseYearLeavesOtherDocumentsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.retains()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "year-end:2026", 1000))
	b.work()
	for _, o := range []books.CloseYearOptions{{To: retained}, {Undo: true}} {
		_, err := books.CloseYear(ctx, b.Pool, org, 2026, o)
		require.ErrorIs(t, err, books.ErrInvalid)
		require.ErrorContains(t, err, "document year-end:2026 of organization org_1 is no year-end close")
	}
}
