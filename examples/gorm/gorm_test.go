package gorm

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { daybooktest.Main(m, daybooktest.Options{Migrate: migrate}) }

// migrate makes the application's tables in the template. It closes its connections, or no database
// could be copied from it.
func migrate(_ context.Context, databaseURL string) error {
	db, err := gorm.Open(postgres.Open(databaseURL), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	connections, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { _ = connections.Close() }()
	return db.AutoMigrate(&Invoice{}, &Line{})
}

// bundle is an organization whose invoices are in the example's table.
type bundle struct {
	*daybooktest.DB
	t       *testing.T
	gorm    *gorm.DB
	sources accounting.Sources
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{DB: daybooktest.New(t), t: t}
	connections := stdlib.OpenDBFromPool(b.Pool)
	t.Cleanup(func() { assert.NoError(t, connections.Close()) })
	var err error
	b.gorm, err = gorm.Open(postgres.New(postgres.Config{Conn: connections}), &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	b.sources, err = Sources()
	require.NoError(t, err)
	daybooktest.AddOrganization(t, b.Pool, daybooktest.Organization{ID: "acme", Source: "invoices"})
	return b
}

// issue writes an invoice of 100.00 and 19 % of tax.
func (b *bundle) issue() *Invoice {
	b.t.Helper()
	i := &Invoice{
		OrgID: "acme", Number: "2026-1", Customer: "Ada", IssuedOn: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		ReadyAt: new(time.Now()),
		Lines:   []Line{{Text: "Tea", NetCents: 6000}, {Text: "Cups", NetCents: 4000}},
	}
	require.NoError(b.t, Create(b.t.Context(), b.gorm, i))
	return i
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
	i := b.issue()
	assert.Equal(t, sale, b.post())
	require.NoError(t, b.gorm.First(i, i.ID).Error)
	assert.NotNil(t, i.PostedAt)
	require.NoError(t, Change(t.Context(), b.gorm, i.ID, func(i *Invoice) { i.Lines[1].NetCents = 5000 }))
	assert.Equal(t, map[string]int64{"1200": 13090, "3800": -2090, "4400": -11000}, b.post())
}

func TestReopenedInvoiceIsReversedUntilItIsReadyAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i := b.issue()
	b.post()
	require.NoError(t, Change(t.Context(), b.gorm, i.ID, func(i *Invoice) { i.ReadyAt = nil }))
	assert.Empty(t, b.post())
	require.NoError(t, Change(t.Context(), b.gorm, i.ID, func(i *Invoice) { i.ReadyAt = new(time.Now()) }))
	assert.Equal(t, sale, b.post())
}

func TestDeletedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i := b.issue()
	b.post()
	require.NoError(t, Delete(t.Context(), b.gorm, i.ID))
	assert.Empty(t, b.post())
}

func TestRemovedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i := b.issue()
	b.post()
	require.NoError(t, Remove(t.Context(), b.gorm, "acme", i.ID))
	assert.Empty(t, b.post())
}

func TestDraftMayBeRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	draft := &Invoice{OrgID: "acme", IssuedOn: time.Now()}
	require.NoError(t, Create(t.Context(), b.gorm, draft))
	require.NoError(t, Change(t.Context(), b.gorm, draft.ID, func(i *Invoice) { i.Number = "2026-2" }))
	require.NoError(t, Remove(t.Context(), b.gorm, "acme", draft.ID))
	assert.Empty(t, b.post())
}

// TestNothingIsEnqueuedOfWhatIsRolledBack: the invoice and its job are one transaction.
func TestNothingIsEnqueuedOfWhatIsRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.gorm.Transaction(func(tx *gorm.DB) error {
		if err := Create(t.Context(), tx,
			&Invoice{OrgID: "acme", IssuedOn: time.Now(), ReadyAt: new(time.Now())}); err != nil {
			return err
		}
		return models.Errorf(models.CodeHandlerError, "the card was refused")
	})
	require.Error(t, err)
	assert.Empty(t, queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{Sources: b.sources}).Jobs)
}
