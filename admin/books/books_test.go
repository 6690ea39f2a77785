package books_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/models"
)

// A change in a transaction is undone with it, and one that fails leaves the transaction usable.
func TestInATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.Dump(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = books.ApplyRules(t.Context(), books.In(tx), "new", sample.Rules(), books.ApplyOptions{})
	require.ErrorIs(t, err, books.ErrOrganizationNotFound)
	c, err := books.ApplyRules(t.Context(), books.In(tx), "new", sample.Rules(), books.ApplyOptions{Create: true})
	require.NoError(t, err, "the refusal before did not end the transaction")
	assert.True(t, c.Changed)
	assert.NotEmpty(t, c.MissingAccounts, "it has no chart yet")
	sets, err := books.RuleSets(t.Context(), books.In(tx), "new")
	require.NoError(t, err)
	assert.Len(t, sets, 1, "the transaction sees its own change")
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Equal(t, before, b.Dump(t))
}

// A stricter isolation level would read what was true before the change waited for its lock.
func TestAStricterTransactionIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		require.NoError(t, err)
		_, err = books.ClosePeriod(t.Context(), books.In(tx), org, models.Period{StartsOn: models.NewDate(2026, 3, 1)},
			books.CloseOptions{})
		require.ErrorIs(t, err, books.ErrInvalid)
		assert.ErrorContains(t, err, string(level)+": begin it as READ COMMITTED, or pass the pool")
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// A database whose transactions are stricter by default changes nothing for a pool.
func TestAPoolWithStricterDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SET default_transaction_isolation = 'serializable'; SET search_path = public`)
	require.NoError(t, err)
	_, err = books.ApplyRules(t.Context(), conn, org, append(sample.Rules(), "# changed\n"...), books.ApplyOptions{})
	require.NoError(t, err)
	require.NoError(t, addPeriods(t.Context(), conn, org, books.Year(2026)...))
}

// A period that is named as a month must be that month; the refusal closes nothing.
func TestPeriodsAreNamedExactly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	quarter := models.Period{StartsOn: models.NewDate(2026, 1, 1), EndsOn: models.NewDate(2026, 3, 31)}
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, quarter))
	_, err := books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 1), books.CloseOptions{})
	require.ErrorIs(t, err, books.ErrInvalid)
	assert.ErrorContains(t, err, "ends on 2026-03-31, not on 2026-01-31")
	periods, err := books.Periods(t.Context(), b.Pool, org)
	require.NoError(t, err)
	assert.Equal(t, models.PeriodOpen, periods[0].State)
	p, err := books.ClosePeriod(t.Context(), b.Pool, org, quarter, books.CloseOptions{})
	require.NoError(t, err)
	assert.Equal(t, models.PeriodClosed, p.State)
}

// A call whose answer was lost, and that is made again, adds what is missing and leaves the others,
// open or closed.
func TestPeriodsAreAddedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	added, err := books.AddPeriods(t.Context(), b.Pool, org, []models.Period{books.Month(2026, 3)}, books.AddPeriodsOptions{})
	require.NoError(t, err)
	assert.Len(t, added, 1)
	_, err = books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 3), books.CloseOptions{})
	require.NoError(t, err)
	for _, want := range []int{11, 0} {
		added, err = books.AddPeriods(t.Context(), b.Pool, org, books.Year(2026), books.AddPeriodsOptions{})
		require.NoError(t, err)
		assert.Len(t, added, want)
	}
	periods, err := books.Periods(t.Context(), b.Pool, org)
	require.NoError(t, err)
	assert.Len(t, periods, 12)
	assert.Equal(t, models.PeriodClosed, periods[2].State)
}

// A chart, a period and a policy that are none are refused before anything is written.
func TestWrongBooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.Dump(t)
	for name, err := range map[string]error{
		"type": second(books.PutAccounts(t.Context(), b.Pool, org, []models.Account{{Code: "1", Type: "bag"}},
			books.AccountsOptions{})),
		"code": second(books.PutAccounts(t.Context(), b.Pool, org, []models.Account{{Type: models.AccountAsset}},
			books.AccountsOptions{})),
		"currency": second(books.PutAccounts(t.Context(), b.Pool, org,
			[]models.Account{{Code: "1", Type: models.AccountAsset, Currencies: models.Currencies{"EURO"}}},
			books.AccountsOptions{})),
		"policy":    second(books.SetClosedPeriodPolicy(t.Context(), b.Pool, org, "perhaps")),
		"no period": addPeriods(t.Context(), b.Pool, org),
	} {
		require.ErrorIs(t, err, books.ErrInvalid, name)
	}
	assert.Equal(t, before, b.Dump(t))
}

func second[T any](_ T, err error) error { return err }

// What had failed for a closed period, the rules or an account comes back with the change that puts
// it right.
func TestWhatFailedComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, books.Month(2026, 3)))
	_, err := books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 3), books.CloseOptions{})
	require.NoError(t, err)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "late", 1000))
	b.work()
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		p, err := books.OpenPeriod(ctx, books.In(tx), org, books.Month(2026, 3), books.OpenOptions{})
		require.NoError(t, err)
		assert.Equal(t, 1, p.Returned)
	})
	assert.Equal(t, 1, b.work().Completed)
}

// Another type moves what was posted to an account in every statement, also of closed years: it is
// refused until it is asked for.
func TestTypesOfAccountsWithEntries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "sale", 1000))
	b.work()
	change := []models.Account{
		{Code: "4400", Name: "Sales", Type: models.AccountLiability},
		{Code: "9999", Name: "New", Type: models.AccountAsset},
	}
	_, err := books.PutAccounts(t.Context(), b.Pool, org, change, books.AccountsOptions{})
	require.ErrorIs(t, err, books.ErrAccountInUse)
	require.ErrorContains(t, err, "account 4400 from income to liability, with a balance of -10.00 EUR")
	accounts, err := books.Accounts(t.Context(), b.Pool, org)
	require.NoError(t, err)
	for _, a := range accounts {
		assert.NotEqual(t, "9999", a.Code, "nothing of the file is written")
		assert.False(t, a.Code == "4400" && a.Type != models.AccountIncome)
	}

	done, err := books.PutAccounts(t.Context(), b.Pool, org, change, books.AccountsOptions{ChangeTypes: true})
	require.NoError(t, err)
	assert.True(t, done.Changed)
	assert.Equal(t, []books.MovedBalance{{
		Account: "4400", From: models.AccountIncome, To: models.AccountLiability,
		BalanceMinor: "-1000", Balance: "-10.00", Currency: "EUR",
	}}, done.Moved)
	done, err = books.PutAccounts(t.Context(), b.Pool, org, change, books.AccountsOptions{})
	require.NoError(t, err)
	assert.Empty(t, done.Moved)

	// An account without entries has nothing that could move.
	_, err = books.PutAccounts(t.Context(), b.Pool, org,
		[]models.Account{{Code: "9999", Name: "New", Type: models.AccountExpense}}, books.AccountsOptions{})
	require.NoError(t, err)
}
