package books_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const standFor = `SELECT daybook.stand_for_documents(ARRAY[$1], ARRAY[$2], ARRAY['old-17'])`

// begin begins a transaction that is rolled back at the end of the test, unless it is committed.
func (b *bundle) begin() pgx.Tx {
	b.t.Helper()
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(b.t.Context())) })
	return tx
}

// Two open items of two transactions stand for one document: one of them is refused.
func TestOneOpenItemStandsForADocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	for _, id := range []string{"opening:1200/1/", "opening:1200/2/"} {
		fixture.Ready(t, b.Pool, fixture.Invoice(org, id, 100)) // what it posts does not matter
	}
	first := b.begin()
	require.NoError(t, second(first.Exec(ctx, standFor, org, "opening:1200/1/")))
	other := make(chan error, 1)
	go func() { other <- second(b.Pool.Exec(ctx, standFor, org, "opening:1200/2/")) }()
	b.awaitLocked(1)
	require.NoError(t, first.Commit(ctx))
	require.ErrorContains(t, <-other, "has the open item opening:1200/1/ already")
}

// A document that is written while an open item comes to stand for it is not posted meanwhile, nor
// later.
func TestNothingIsPostedWhileAnOpenItemComesToStandForIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "opening:1200/1/", 100))
	b.work()
	first := b.begin()
	require.NoError(t, second(first.Exec(ctx, standFor, org, "opening:1200/1/")))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "old-17", 100))
	b.work()
	job := fixture.Job(t, b.Pool, org, "old-17")
	require.NotNil(t, job.LastErrorCode)
	require.Equal(t, models.CodeConfigurationLocked, *job.LastErrorCode)
	require.NoError(t, first.Commit(ctx))
	require.NoError(t, second(b.Pool.Exec(ctx, `UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)))
	b.work()
	assert.Equal(t, models.JobCompleted, fixture.Job(t, b.Pool, org, "old-17").State)
	assert.Empty(t, fixture.Impacts(t, b.Pool, org, "old-17"), "it is open already, as opening:1200/1/")
}

// A stricter transaction might not see what is posted.
func TestStandingForADocumentInAStricterTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "opening:1200/1/", 100))
	err := pgx.BeginTxFunc(t.Context(), b.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		return second(tx.Exec(t.Context(), standFor, org, "opening:1200/1/"))
	})
	require.Equal(t, "DB010", store.SQLState(err), "%v", err)
	require.ErrorContains(t, err, "isolation level")
}
