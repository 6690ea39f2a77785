package books_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// in is a document in another currency.
func in(currency string, d *models.Document) *models.Document {
	d.Currency = currency
	return d
}

const fileOfRates = `currency,valid_on,rate,source
USD,2026-02-28,0.90,ECB
USD,2026-03-05,0.92,ECB
USD,2026-03-10,0.88,ECB
JPY,2026-03-01,0.006,ECB
`

// booksMarch books exchange differences until the end of March, and returns the id of the journal.
func (b *bundle) booksMarch() string {
	b.t.Helper()
	done, err := books.BookExchangeDifferences(b.t.Context(), b.Pool, org,
		books.ExchangeBooking{Until: models.NewDate(2026, 3, 31), Adjustment: "1370", Gain: "4920", Loss: "6960"})
	require.NoError(b.t, err)
	return done.DocumentID
}

func (b *bundle) withRates() {
	b.t.Helper()
	_, err := books.SetOwnCurrency(b.t.Context(), b.Pool, org, "EUR")
	require.NoError(b.t, err)
	rates, err := books.ParseRates([]byte(fileOfRates))
	require.NoError(b.t, err)
	changed, err := books.PutRates(b.t.Context(), b.Pool, org, rates, books.PutRatesOptions{})
	require.NoError(b.t, err)
	require.EqualValues(b.t, 4, changed)
	changed, err = books.PutRates(b.t.Context(), b.Pool, org, rates, books.PutRatesOptions{})
	require.NoError(b.t, err)
	require.Zero(b.t, changed)
}

// What was won and lost follows the groups: it is booked once, and taken back when documents are
// taken apart.
func TestExchangeDifferences(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	bill := in("USD", sold(org, "bill", "Sue", 5, 10000))
	bill.Direction = models.DirectionIn
	paid := in("USD", pays(org, "paid", "Sue", 20, 10000))
	paid.Direction = models.DirectionOut
	fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)), in("USD", sold(org, "b", "Ada", 4, 5000)),
		in("USD", pays(org, "p", "Ada", 6, 12000)), in("USD", pays(org, "q", "Ada", 12, 3000)), bill, paid,
		in("JPY", sold(org, "j", "Ken", 1, 10000)), in("JPY", pays(org, "k", "Ken", 9, 10000)),
		sold(org, "own", "Ada", 1, 100), pays(org, "own-p", "Ada", 9, 100))
	b.work()
	group := b.reconcile("a", "b", "p", "q")
	b.reconcile("bill", "paid")
	b.reconcile("j", "k")
	b.reconcile("own", "own-p")

	march := models.NewDate(2026, 3, 31)
	e, err := books.ExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeOptions{Until: march})
	require.NoError(t, err)
	var got []string
	for _, d := range e.Differences {
		got = append(got, fmt.Sprintf("%s %s %s-%s %s: %s-%s %s", d.Account, d.Currency, d.DebitDocument, d.CreditDocument, d.Amount,
			d.CreditRate, d.DebitRate, d.Difference))
	}
	assert.Equal(t, []string{
		"1200 USD a-p 10000: 0.92-0.9 200", "1200 USD b-p 2000: 0.92-0.9 40", "1200 USD b-q 3000: 0.88-0.9 -60",
		"1600 USD paid-bill 10000: 0.92-0.88 400", "1200 JPY j-k 10000: 0.006-0.006 0",
	}, got)
	assert.Equal(t, "580", e.Realised.String())
	assert.Nil(t, e.ToBook)
	e, err = books.ExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeOptions{Until: models.NewDate(2026, 3, 6)})
	require.NoError(t, err)
	assert.Equal(t, "240", e.Realised.String(), "what was paid by then")

	book := func(until models.Date, accounts ...string) books.ExchangeBooked {
		o := books.ExchangeBooking{Until: until}
		if len(accounts) > 0 {
			o.Adjustment, o.Gain, o.Loss = accounts[0], accounts[1], accounts[2]
		}
		done, err := books.BookExchangeDifferences(t.Context(), b.Pool, org, o)
		require.NoError(t, err)
		return done
	}
	balance := func(account string) int64 { return fixture.Balance(t, b.Pool, org, account, "EUR") }
	_, err = books.BookExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeBooking{Until: march})
	require.ErrorIs(t, err, books.ErrInvalid, "without accounts")
	first := book(march, "1370", "4920", "6960")
	assert.Equal(t, "exchange:2026-03-31/1", first.DocumentID)
	assert.Empty(t, book(march).DocumentID, "it is not posted yet, and not booked again")
	b.work()
	assert.Equal(t, [3]int64{580, -580, 0}, [3]int64{balance("1370"), balance("4920"), balance("6960")})
	assert.Empty(t, book(march).DocumentID)

	require.NoError(t, second(books.DissolveGroup(t.Context(), b.Pool, org, group.ID)))
	assert.Equal(t, "-180", book(march).ToBook.String())
	b.work()
	assert.Equal(t, [3]int64{400, -580, 180}, [3]int64{balance("1370"), balance("4920"), balance("6960")})
	b.reconcile("a", "b", "p", "q")
	assert.Equal(t, "exchange:2026-03-31/3", book(march).DocumentID)
	e, err = books.ExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeOptions{Until: march})
	require.NoError(t, err)
	assert.Equal(t, []string{"580", "580", "0"}, []string{e.Realised.String(), e.Booked.String(), e.ToBook.String()})
}

func TestRates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := books.PutRates(t.Context(), b.Pool, org, []models.CurrencyRate{{Currency: "USD", ValidOn: models.NewDate(2026, 3, 1), Rate: "1"}}, books.PutRatesOptions{})
	require.ErrorIs(t, err, books.ErrInvalid, "no own currency")
	_, err = books.ExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeOptions{})
	require.ErrorIs(t, err, books.ErrInvalid)
	b.withRates()
	own, err := books.OwnCurrency(t.Context(), b.Pool, org)
	require.NoError(t, err)
	assert.Equal(t, "EUR", own)
	_, err = books.SetOwnCurrency(t.Context(), b.Pool, org, "CHF")
	require.ErrorIs(t, err, books.ErrInvalid, "there are rates in EUR")
	c, err := books.SetOwnCurrency(t.Context(), b.Pool, org, "EUR")
	require.NoError(t, err)
	assert.False(t, c.Changed)
	list, err := books.Rates(t.Context(), b.Pool, org, books.RatesOptions{Currency: "USD", Limit: 2})
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, models.CurrencyRate{
		Currency: "USD", ValidOn: models.NewDate(2026, 3, 10), Rate: "0.88", Source: "ECB", Actor: "an operator",
	}, list[0])
	_, err = books.PutRates(t.Context(), b.Pool, org, []models.CurrencyRate{
		{Currency: "CHF", ValidOn: models.NewDate(2026, 3, 10), Rate: "1.05"}, {Currency: "GBP", ValidOn: models.NewDate(2026, 3, 10), Rate: "1.15"},
	}, books.PutRatesOptions{})
	require.NoError(t, err)
	whole, err := books.Rates(t.Context(), b.Pool, org, books.RatesOptions{})
	require.NoError(t, err)
	var paged []models.CurrencyRate
	for o := (books.RatesOptions{Limit: 1}); ; o.After = &paged[len(paged)-1] {
		one, err := books.Rates(t.Context(), b.Pool, org, o)
		require.NoError(t, err)
		if len(one) == 0 {
			break
		}
		paged = append(paged, one...)
	}
	assert.Equal(t, whole, paged)
	require.Greater(t, len(paged), 3)
	for _, file := range []string{
		"", "currency,rate\nUSD,1\n", "currency,valid_on,rate,rate\n", "currency,valid_on,rate\nUSD,2026-03-01,0\n",
		"currency,valid_on,rate\nUSD,2026-03-01,-1\n", "currency,valid_on,rate\nUSD,soon,1\n", "currency,valid_on,rate\nUSD,2026-03-01\n",
		"currency,valid_on,rate\nXXX,2026-03-01,1\n", "currency,valid_on,rate\nUSD,2026-03-01,1e5\n",
	} {
		_, err := books.ParseRates([]byte(file))
		require.ErrorIs(t, err, books.ErrInvalid, file)
	}
	// A rate is missing: nothing is booked, and the error says which.
	fixture.Ready(t, b.Pool, in("CHF", sold(org, "a", "Ada", 1, 100)), in("CHF", pays(org, "p", "Ada", 6, 100)))
	b.work()
	b.reconcile("a", "p")
	_, err = books.BookExchangeDifferences(t.Context(), b.Pool, org,
		books.ExchangeBooking{Until: models.NewDate(2026, 3, 31), Adjustment: "1370", Gain: "4920", Loss: "6960"})
	require.ErrorContains(t, err, "no rate of CHF on 2026-03-01")
}

// TestMinorDigitsInSQL: the database rounds to the same minor units.
func TestMinorDigitsInSQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for a := 'A'; a <= 'Z'; a++ {
		for c := 'A'; c <= 'Z'; c++ {
			var codes []string
			var want []int32
			for d := 'A'; d <= 'Z'; d++ {
				code := string([]rune{a, c, d})
				if digits, ok := models.MinorDigits(code); ok {
					codes, want = append(codes, code), append(want, int32(digits))
				}
			}
			if codes == nil {
				continue
			}
			var got []int32
			require.NoError(t, b.Pool.QueryRow(t.Context(),
				`SELECT array_agg(daybook.minor_digits(c) ORDER BY n) FROM unnest($1::text[]) WITH ORDINALITY AS u (c, n)`, codes).Scan(&got))
			require.Equal(t, want, got, codes)
		}
	}
}

// An adjustment account that is used for something else would count what stands there as booked, and
// another one than before would book all of it a second time.
func TestAdjustmentAccountIsForNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	_, err := books.PutAccounts(t.Context(), b.Pool, org, []models.Account{
		{Code: "1298", Name: "Adjustment", Type: models.AccountAsset},
		{Code: "1299", Name: "Another", Type: models.AccountAsset},
		{Code: "4840", Name: "Gains", Type: models.AccountIncome},
		{Code: "6880", Name: "Losses", Type: models.AccountExpense},
	}, books.AccountsOptions{})
	require.NoError(t, err)
	fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)), in("USD", pays(org, "p", "Ada", 6, 10000)))
	b.work()
	b.reconcile("a", "p")
	book := func(adjustment string) error {
		_, err := books.BookExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeBooking{
			Until: models.NewDate(2026, 3, 31), Adjustment: adjustment, Gain: "4840", Loss: "6880",
		})
		return err
	}
	require.ErrorContains(t, book("1200"), "has the role receivable")
	require.ErrorContains(t, book("4125"), "entries that are no exchange differences")
	require.NoError(t, book("1298"))
	require.ErrorContains(t, book("1299"), "booked a second time")
	b.work()
	require.ErrorContains(t, book("1299"), "booked a second time")
	require.NoError(t, book("1298"))
}

// A journal that no worker could post is refused, and nothing counts as booked.
func TestExchangeDifferencesOfAnotherSource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	_, err := b.Pool.Exec(t.Context(), `UPDATE daybook.organizations SET source = 'shop' WHERE id = $1`, org)
	require.NoError(t, err)
	_, err = books.CloseYear(t.Context(), b.Pool, org, 2025, books.CloseYearOptions{To: "2900"})
	require.ErrorIs(t, err, books.ErrJournal)
}

// A date that was corrected counts for nothing any more: not for the rate, nor for what is the oldest,
// nor as the date of a document whose row is gone.
func TestADateThatWasCorrectedCountsForNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	wrong := in("USD", sold(org, "a", "Ada", 30, 10000))
	wrong.IssueDate = models.NewDate(2026, 3, 30)
	fixture.Ready(t, b.Pool, wrong, in("USD", sold(org, "b", "Ada", 7, 10000)), in("USD", pays(org, "p", "Ada", 12, 10000)))
	b.work()
	fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)))
	b.work()
	b.reconcile("a", "b", "p")

	e, err := books.ExchangeDifferences(t.Context(), b.Pool, org, books.ExchangeOptions{})
	require.NoError(t, err)
	require.Len(t, e.Differences, 1)
	d := e.Differences[0]
	assert.Equal(t, "a 2026-03-01 0.9 -200", fmt.Sprint(d.DebitDocument, " ", d.DebitDay, " ", d.DebitRate, " ", d.Difference))
	assert.Equal(t, map[string]string{"b 1200": "10000"}, b.openItems(org, models.Date{}), "the oldest is paid first")

	require.NoError(t, second(books.DissolveGroup(t.Context(), b.Pool, org, d.GroupID)))
	require.NoError(t, second(b.Pool.Exec(t.Context(), `DELETE FROM daybook.documents WHERE id = 'a'`)))
	list, err := books.OpenItems(t.Context(), b.Pool, org, books.OpenItemsOptions{Counterparty: new("")})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "a 2026-03-01", fmt.Sprint(list[0].DocumentID, " ", list[0].IssueDate))
}

// The number of the next journal of a day is behind all that there were: a removed one leaves no hole
// in which the next would take the place of one that is posted.
func TestExchangeJournalsAreNumberedOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)), in("USD", pays(org, "p", "Ada", 6, 10000)))
	b.work()
	book := func() string {
		t.Helper()
		id := b.booksMarch()
		b.work()
		return id
	}
	remove := func(id string) {
		t.Helper()
		b.tx(func(ctx context.Context, tx pgx.Tx) {
			require.NoError(t, second(store.MarkDocumentDeleted(ctx, tx, org, id)))
		})
		b.work()
		require.NoError(t, second(b.Pool.Exec(t.Context(), `DELETE FROM daybook.documents WHERE id = $1`, id)))
	}
	group := b.reconcile("a", "p")
	require.Equal(t, "exchange:2026-03-31/1", book())
	require.NoError(t, second(books.DissolveGroup(t.Context(), b.Pool, org, group.ID)))
	require.Equal(t, "exchange:2026-03-31/2", book())
	remove("exchange:2026-03-31/1")
	require.Equal(t, "exchange:2026-03-31/3", book(), "the first is gone, and the second is posted")
	remove("exchange:2026-03-31/3")
	require.Equal(t, "exchange:2026-03-31/4", book(), "what was posted of the third is in the ledger")
}

// A journal that is deleted does not count as booked, though no worker has reversed it yet.
func TestADeletedExchangeJournalIsNotBooked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)), in("USD", pays(org, "p", "Ada", 6, 10000)))
	b.work()
	b.reconcile("a", "p")
	require.Equal(t, "exchange:2026-03-31/1", b.booksMarch())
	b.work()
	require.NoError(t, second(books.DeleteJournal(t.Context(), b.Pool, org, "exchange:2026-03-31/1")))
	require.Equal(t, "exchange:2026-03-31/2", b.booksMarch(), "before a worker has come to the deletion")
	b.work()
	assert.EqualValues(t, 200, fixture.Balance(t, b.Pool, org, "1370", "EUR"))
	assert.Empty(t, b.booksMarch(), "one is reversed, and the other posted")
}
