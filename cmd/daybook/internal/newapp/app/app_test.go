package main

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { daybooktest.Main(m, daybooktest.Options{Migrate: migrateOrders}) }

// bundle is a database of the test's own, with the tables and the books of this program.
type bundle struct {
	t       *testing.T
	pool    *pgxpool.Pool
	sources accounting.Sources
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, pool: daybooktest.New(t).Pool}
	require.NoError(t, setUpBooks(t.Context(), b.pool))
	var err error
	b.sources, err = sources()
	require.NoError(t, err)
	return b
}

func (b *bundle) place() int64 {
	b.t.Helper()
	id, err := Place(b.t.Context(), b.pool, "Ada", 10000)
	require.NoError(b.t, err)
	return id
}

// post posts what is due, and returns the balances.
func (b *bundle) post() map[string]int64 {
	b.t.Helper()
	queuetest.DrainAccounting(b.t, b.pool, queuetest.AccountingOptions{Sources: b.sources})
	queuetest.RequireSound(b.t, b.pool, b.sources)
	return daybooktest.Balances(b.t, b.pool, org, "EUR")
}

func TestOrderIsPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.place()
	assert.Equal(t, map[string]int64{"1200": 11900, "3800": -1900, "4400": -10000}, b.post())
	var posted bool
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT posted FROM app.orders WHERE id = $1`, id).Scan(&posted))
	assert.True(t, posted)
}

func TestCancelledOrderIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.place()
	b.post()
	require.NoError(t, Cancel(t.Context(), b.pool, id))
	assert.Empty(t, b.post())
	require.ErrorIs(t, Cancel(t.Context(), b.pool, id), pgx.ErrNoRows, "it is cancelled once")
}

func TestReceiptIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.place()
	queuetest.DrainJobs(t, b.pool, registry(b.pool), queuetest.JobsOptions{}).RequireCompleted(t)
	var text string
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT text FROM app.receipts WHERE order_id = $1`, id).Scan(&text))
	assert.Equal(t, "Ada pays 119.00 EUR for order 1.", text)
}

// TestReceiptOfNoOrder cannot be mended by trying again.
func TestReceiptOfNoOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := queue.EnqueueJob(t.Context(), b.pool, org, Receipt{OrderID: 7}, queue.JobOptions{})
	require.NoError(t, err)
	drained := queuetest.DrainJobs(t, b.pool, registry(b.pool), queuetest.JobsOptions{})
	require.Len(t, drained.Jobs, 1)
	assert.Equal(t, models.CodeNotFound, drained.Jobs[0].ErrorCode)
}

// TestNothingFollowsWhatIsRolledBack: the order, its posting and its receipt are one transaction.
func TestNothingFollowsWhatIsRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refused := errors.New("the card was refused")
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		id, err := PlaceIn(t.Context(), tx, "Ada", 10000)
		if err != nil {
			return err
		}
		queuetest.RequireJobEnqueued(t, tx, func(j queuetest.Job[Receipt]) bool { return j.Payload.OrderID == id })
		return refused
	})
	require.ErrorIs(t, err, refused)
	queuetest.RequireJobNotEnqueued[Receipt](t, b.pool)
	assert.Empty(t, b.post())
}
