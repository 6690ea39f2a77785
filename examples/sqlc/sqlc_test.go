package sqlc

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/examples/sqlc/db"
)

func TestMain(m *testing.M) {
	daybooktest.Main(m, daybooktest.Options{Migrate: daybooktest.SQL(schema)})
}

// bundle is an organization whose invoices are in the example's table.
type bundle struct {
	*daybooktest.DB
	t       *testing.T
	sources accounting.Sources
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{DB: daybooktest.New(t), t: t}
	var err error
	b.sources, err = Sources()
	require.NoError(t, err)
	daybooktest.AddOrganization(t, b.Pool, daybooktest.Organization{ID: "acme", Source: "invoices"})
	return b
}

func (b *bundle) tx(f func(ctx context.Context, tx pgx.Tx) error) {
	b.t.Helper()
	ctx := b.t.Context()
	require.NoError(b.t, pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return f(ctx, tx) }))
}

// issue writes an invoice of 100.00 and 19 % of tax.
func (b *bundle) issue() (id pgtype.UUID) {
	b.t.Helper()
	b.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		id, err = Create(ctx, tx, "acme", "2026-1", "Ada", time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
			[]Line{{"Tea", 6000}, {"Cups", 4000}})
		return err
	})
	return id
}

// post posts what is due, and returns the balances.
func (b *bundle) post() map[string]int64 {
	b.t.Helper()
	queuetest.DrainAccounting(b.t, b.Pool, queuetest.AccountingOptions{Sources: b.sources})
	queuetest.RequireSound(b.t, b.Pool, b.sources)
	return daybooktest.Balances(b.t, b.Pool, "acme", "EUR")
}

var sale = map[string]int64{"1200": 11900, "3800": -1900, "4400": -10000}

func TestInvoiceIsPostedAndPostedAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	assert.Equal(t, sale, b.post())
	invoices, err := db.New(b.Pool).ReadInvoices(t.Context(), []pgtype.UUID{id})
	require.NoError(t, err)
	assert.True(t, invoices[0].Posted)
	b.tx(func(ctx context.Context, tx pgx.Tx) error { return PutLine(ctx, tx, "acme", id, 2, Line{"Cups", 5000}) })
	assert.Equal(t, map[string]int64{"1200": 13090, "3800": -2090, "4400": -11000}, b.post())
}

func TestReopenedInvoiceIsReversedUntilItIsIssuedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	b.post()
	b.tx(func(ctx context.Context, tx pgx.Tx) error { return Reopen(ctx, tx, "acme", id) })
	assert.Empty(t, b.post())
	b.tx(func(ctx context.Context, tx pgx.Tx) error { return Issue(ctx, tx, "acme", id) })
	assert.Equal(t, sale, b.post())
}

func TestDeletedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	b.post()
	b.tx(func(ctx context.Context, tx pgx.Tx) error { return Delete(ctx, tx, "acme", id) })
	assert.Empty(t, b.post())
	invoices, err := db.New(b.Pool).ReadInvoices(t.Context(), []pgtype.UUID{id})
	require.NoError(t, err)
	assert.False(t, invoices[0].Posted)
}

func TestRemovedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	b.post()
	b.tx(func(ctx context.Context, tx pgx.Tx) error { return Remove(ctx, tx, "acme", id) })
	assert.Empty(t, b.post())
}
