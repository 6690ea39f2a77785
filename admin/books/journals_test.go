package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
)

// rent is a journal of two entries.
func rent(id string, amount int64) books.Journal {
	return books.Journal{
		ID: id, Date: models.NewDate(2026, 3, 31), Number: "J-7", Counterparty: "Landlord", Currency: "EUR",
		Dimensions: models.Dimensions{"cost_centre": "office"}, Reason: "Accrued rent", By: "clerk",
		Entries: []models.JournalEntry{
			{Account: "6300", Amount: amount, Note: "March"},
			{Account: "1600", Amount: -amount, Dimensions: models.Dimensions{"cost_centre": ""}},
		},
	}
}

// put writes a journal.
func (b *bundle) journal(j books.Journal) books.JournalChange {
	b.t.Helper()
	c, err := books.PutJournal(b.t.Context(), b.Pool, org, j)
	require.NoError(b.t, err)
	return c
}

// TestJournalIsPostedReplacedAndReversed: the same journal again is nothing new, another one under
// its id replaces it, and a deleted one stays deleted.
func TestJournalIsPostedReplacedAndReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	balance := func() int64 { return fixture.Balance(t, b.Pool, org, "6300", "EUR") }
	c := b.journal(rent("rent-3", 500))
	assert.True(t, c.Changed)
	assert.Equal(t, "journal:rent-3", c.DocumentID)
	assert.Equal(t, "2026-03-31", c.PostingDate.String())
	assert.NotEmpty(t, c.JobID)
	assert.False(t, b.journal(rent("journal:rent-3", 500)).Changed)
	b.work()
	assert.EqualValues(t, 500, balance())
	assert.True(t, b.journal(rent("rent-3", 700)).Changed)
	b.work()
	assert.EqualValues(t, 700, balance())

	other := b.journal(rent("", 40))
	again := b.journal(rent("", 40))
	assert.NotEqual(t, other.DocumentID, again.DocumentID, "without an id it is another one")
	b.work()
	assert.EqualValues(t, 780, balance())
	list, err := books.Journals(t.Context(), b.Pool, org, books.JournalsOptions{Limit: 2})
	require.NoError(t, err)
	require.Len(t, list, 2)
	rest, err := books.Journals(t.Context(), b.Pool, org, books.JournalsOptions{Before: list[1].ID})
	require.NoError(t, err)
	require.Len(t, rest, 1)
	assert.Equal(t, other.DocumentID, rest[0].ID, "in the reverse order of ids")
	assert.Equal(t, "Landlord", rest[0].Content.Counterparty)

	d, err := books.DeleteJournal(t.Context(), b.Pool, org, c.DocumentID)
	require.NoError(t, err)
	assert.True(t, d.Changed)
	d, err = books.DeleteJournal(t.Context(), b.Pool, org, c.DocumentID)
	require.NoError(t, err)
	assert.False(t, d.Changed)
	b.work()
	assert.EqualValues(t, 80, balance())
	_, err = books.PutJournal(t.Context(), b.Pool, org, rent("rent-3", 1))
	require.ErrorIs(t, err, books.ErrJournal)
	report, err := audit.Run(t.Context(), b.Pool, audit.Options{OrgID: org})
	require.NoError(t, err)
	for _, check := range report.Checks {
		assert.Empty(t, check.Findings, check.Kind)
	}
}

// An organization that posts journals alone needs no rules: then a new version is posted anew, also where
// it leads to the same entries.
func TestJournalsWithoutARuleSet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, second(b.Pool.Exec(t.Context(), `UPDATE daybook.organizations SET active_rule_set = NULL`)))
	j := rent("x", 500)
	c := b.journal(j)
	b.work()
	j.Reason = "Accrued rent of March"
	b.journal(j)
	b.work()
	assert.Nil(t, fixture.Job(t, b.Pool, org, c.DocumentID).LastError)
	assert.Len(t, fixture.Impacts(t, b.Pool, org, c.DocumentID), 3)
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_accounting_job($1, $2, 2)`, org, c.DocumentID)
	require.NoError(t, err)
	b.work()
	assert.Len(t, fixture.Impacts(t, b.Pool, org, c.DocumentID), 3, "the same version again")
	assert.EqualValues(t, 500, fixture.Balance(t, b.Pool, org, "6300", "EUR"))
	assert.Empty(t, b.findings())
}

// TestJournalThatCannotBePosted is refused with the reason, and nothing of it is written.
func TestJournalThatCannotBePosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "journal:taken", 1000))
	b.work()
	month := models.Period{StartsOn: models.NewDate(2026, 3, 1), EndsOn: models.NewDate(2026, 3, 31)}
	_, err := books.AddPeriods(t.Context(), b.Pool, org, []models.Period{month}, books.AddPeriodsOptions{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*books.Journal)
		code   models.ErrorCode
		says   string
	}{
		"unbalanced": {func(j *books.Journal) { j.Entries[1].Amount = -499 }, models.CodeUnbalanced, "0.01 EUR"},
		"account":    {func(j *books.Journal) { j.Entries[1].Account = "no" }, models.CodeUnknownAccount, `"no"`},
		"reason":     {func(j *books.Journal) { j.Reason = "" }, models.CodeDocumentInvalid, "reason"},
		"by":         {func(j *books.Journal) { j.By = "" }, models.CodeDocumentInvalid, "by"},
		"zero":       {func(j *books.Journal) { j.Entries[0].Amount = 0 }, models.CodeDocumentInvalid, "entry 1"},
		"dimension":  {func(j *books.Journal) { j.Dimensions = models.Dimensions{"A b": "c"} }, models.CodeDocumentInvalid, "dimension"},
		"none":       {func(j *books.Journal) { j.Entries = nil }, models.CodeDocumentInvalid, "no entries"},
		"currency":   {func(j *books.Journal) { j.Currency = "XXX" }, "", "currency"},
		"date":       {func(j *books.Journal) { j.Date = models.Date{} }, "", "no date"},
		"text":       {func(j *books.Journal) { j.Entries[0].Note = "a\x00" }, "", "NUL"},
		"taken":      {func(j *books.Journal) { j.ID = "taken" }, "", "is no journal"},
	} {
		j := rent("wrong", 500)
		c.change(&j)
		_, err := books.PutJournal(t.Context(), b.Pool, org, j)
		require.ErrorContains(t, err, c.says, name)
		if c.code != "" {
			var failed *models.JobError
			require.ErrorAs(t, err, &failed, name)
			assert.Equal(t, c.code, failed.Code, name)
			require.ErrorIs(t, err, books.ErrJournal, name)
		}
	}
	_, err = books.ClosePeriod(t.Context(), b.Pool, org, month, books.CloseOptions{})
	require.NoError(t, err)
	_, err = books.CheckJournal(t.Context(), b.Pool, org, rent("", 500))
	var failed *models.JobError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, models.CodePeriodClosed, failed.Code)
	require.ErrorIs(t, err, books.ErrPeriodClosed)
	assert.Equal(t, failure.ExitConflict, failure.Of(err).Exit)
	_, err = books.SetClosedPeriodPolicy(t.Context(), b.Pool, org, models.PolicyFirstOpenDay)
	require.NoError(t, err)
	day, err := books.CheckJournal(t.Context(), b.Pool, org, rent("", 500))
	require.NoError(t, err)
	assert.Equal(t, "2026-04-01", day.String())

	_, err = books.DeleteJournal(t.Context(), b.Pool, org, "journal:taken")
	require.ErrorIs(t, err, books.ErrJournalNotFound, "a document that is none")
	_, err = books.DeleteJournal(t.Context(), b.Pool, org, "nothing")
	require.ErrorIs(t, err, books.ErrJournalNotFound)
	_, err = books.PutJournal(t.Context(), b.Pool, "unknown", rent("", 500))
	require.ErrorIs(t, err, books.ErrOrganizationNotFound)
	_, err = b.Pool.Exec(t.Context(), `UPDATE daybook.organizations SET source = 'shop' WHERE id = $1`, org)
	require.NoError(t, err)
	_, err = books.PutJournal(t.Context(), b.Pool, org, rent("", 500))
	require.ErrorContains(t, err, "the source shop")
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents`))
}

// TestAccountsDryRun says what would be done, and does not do it.
func TestAccountsDryRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	accounts := []models.Account{{Code: "1200", Name: "Receivables", Type: models.AccountLiability}}
	c, err := books.PutAccounts(t.Context(), b.Pool, org, accounts, books.AccountsOptions{ChangeTypes: true, DryRun: true})
	require.NoError(t, err)
	assert.True(t, c.Changed)
	assert.Equal(t, []books.MovedBalance{
		{Account: "1200", From: models.AccountAsset, To: models.AccountLiability, BalanceMinor: "1190", Balance: "11.90", Currency: "EUR"},
	}, c.Moved)
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounts WHERE code = '1200' AND type = 'asset'`))
}
