package kindtest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// leasePickedContracts are about picked jobs that last: they are leased.
var leasePickedContracts = []contract{
	{"some are completed and others leased in the transaction that picked them", leasePicked, []notion{picks}},
	{"what waits when it is leased is not being worked", leasePickedWaiting, []notion{picks}},
	{"a transaction that fails leases nothing", leasePickedFails, []notion{picks}},
	{"a later transaction leases what is as it was", leasePickedLater, []notion{picks}},
}

func leasePicked(b *bundle) {
	ctx, jobType := b.t.Context(), b.jobType()
	b.filled(org, 2, 3)
	turn := b.turn("run/0/1")
	pick := b.pick(b.kind, 3, jobType)
	var lasting []store.Job
	require.NoError(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) error {
		picked, err := pick.Lock(ctx, tx)
		require.NoError(b.t, err)
		require.Len(b.t, picked, 3)
		lasting = picked[1:]
		// as if the database's clock had been set back since the last request
		lasting[0].StartedAt = lasting[0].StartedAt.Add(-time.Hour)
		leased, err := b.kind.LeasePicked(ctx, tx, turn, lasting, true)
		require.NoError(b.t, err)
		assert.ElementsMatch(b.t, ids(lasting), leased)
		_, err = b.kind.Complete(ctx, tx, turn, all(done, picked[:1]), store.Access{Picked: true})
		return err
	}))
	assert.Equal(b.t, models.JobCompleted, b.read(b.filledID(org, 2, 1)).State)
	held, err := b.kind.Held(ctx, turn)
	require.NoError(b.t, err)
	assert.ElementsMatch(b.t, ids(lasting), held)
	for _, j := range lasting {
		got := b.read(j.ID)
		assert.Equal(b.t, models.JobLeased, got.State)
		assert.Equal(b.t, turn.Fence, got.Fence)
		assert.True(b.t, got.Working, "it is charged when its worker dies")
		assert.Equal(b.t, 1, got.Attempts)
		assert.Empty(b.t, b.log(j.ID))
	}
	_, err = b.complete(turn, done, lasting...)
	require.NoError(b.t, err)
	require.Len(b.t, b.log(lasting[0].ID), 1)
	assert.Equal(b.t, 1, b.log(lasting[0].ID)[0].Attempt, "the attempt is the one that the pick began")
}

func leasePickedWaiting(b *bundle) {
	ctx, jobType := b.t.Context(), b.jobType()
	b.filled(org, 2, 2)
	turn := b.turn("run/0/1")
	pick := b.pick(b.kind, 2, jobType)
	var picked []store.Job
	require.NoError(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		if picked, err = pick.Lock(ctx, tx); err != nil {
			return err
		}
		require.Len(b.t, picked, 2)
		picked[1].Waiting = true
		_, err = b.kind.LeasePicked(ctx, tx, turn, picked, true)
		return err
	}))
	assert.True(b.t, b.read(picked[0].ID).Working)
	assert.False(b.t, b.read(picked[1].ID).Working)
	begun, err := b.kind.BeginWaiting(ctx, turn, ids(picked[1:]))
	require.NoError(b.t, err)
	assert.Equal(b.t, ids(picked[1:]), begun.Working)
	assert.True(b.t, b.read(picked[1].ID).Working, "it is charged from now on")
}

func leasePickedFails(b *bundle) {
	ctx, jobType := b.t.Context(), b.jobType()
	b.filled(org, 2, 2)
	turn := b.turn("run/0/1")
	pick := b.pick(b.kind, 2, jobType)
	require.ErrorIs(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) error {
		picked, err := pick.Lock(ctx, tx)
		require.NoError(b.t, err)
		_, err = b.kind.LeasePicked(ctx, tx, turn, picked, true)
		require.NoError(b.t, err)
		return pgx.ErrTxCommitRollback
	}), pgx.ErrTxCommitRollback)
	pick.Undo()
	b.pending(b.filledID(org, 2, 1), 0, "as it was")
	held, err := b.kind.Held(ctx, turn)
	require.NoError(b.t, err)
	assert.Empty(b.t, held)
}

// The transaction that picked them has failed, and their handlers go on.
func leasePickedLater(b *bundle) {
	ctx, jobType := b.t.Context(), b.jobType()
	b.filled(org, 2, 3)
	if q, some := b.queue.(interface {
		notUnique(ctx context.Context) error
	}); some {
		require.NoError(b.t, q.notUnique(ctx))
	}
	turn := b.turn("run/0/1")
	pick := b.pick(b.kind, 3, jobType)
	var picked []store.Job
	require.Error(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		picked, err = pick.Lock(ctx, tx)
		require.NoError(b.t, err)
		return pgx.ErrTxCommitRollback
	}))
	// Another process has leased one meanwhile, and one is cancelled.
	leased, err := b.open().LeaseFor(ctx, b.turn("run/1/1"), 1, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.Len(b.t, leased.Jobs, 1)
	var free []string
	for _, j := range picked {
		if j.ID != leased.Jobs[0].ID {
			free = append(free, j.ID)
		}
	}
	require.NoError(b.t, b.cancel(ctx, b.Pool, free[0]))
	for i := range picked {
		// as if the database's clock had been set back since the last request
		picked[i].StartedAt = picked[i].StartedAt.Add(-time.Hour)
	}
	var got []string
	require.NoError(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		got, err = b.kind.LeasePicked(ctx, tx, turn, picked, false)
		return err
	}))
	assert.Equal(b.t, free[1:], got)
	assert.Equal(b.t, turn.ID, b.read(free[1]).Turn)
	assert.Equal(b.t, "run/1/1", b.read(leased.Jobs[0].ID).Turn)
	assert.Equal(b.t, models.JobCancelled, b.read(free[0]).State)
}
