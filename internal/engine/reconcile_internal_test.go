package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// locking locks the row of a job, and returns its transaction.
func locking(t *testing.T, db *pgtest.DB, id string) pgx.Tx {
	t.Helper()
	other, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE id = $1 FOR NO KEY UPDATE`, id)
	require.NoError(t, err)
	return other
}

const notAsBefore = `SELECT count(*) FROM daybook.jobs WHERE NOT (state = 'pending' AND run_count = 0)`

// TestWhatWasLockedIsGivenBackBeforeTheTurnEnds: a turn that goes on for long, with jobs that are
// worked, does not keep what it could not give back at once.
func TestWhatWasLockedIsGivenBackBeforeTheTurnEnds(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(r *runner) error{
		"working":  func(r *runner) error { _, err := r.step(t.Context(), false); return err },
		"draining": func(r *runner) error { r.putBack(t.Context()); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			e, _ := picking(t, db, 5, done)
			enqueueNamed(t, db, 3)
			r, jobs := leasing(t, e, 3)
			r.worker.begun[jobs[2].ID], r.worker.active = true, 1
			other := locking(t, db, jobs[0].ID)
			r.holder.giveBackAfter(jobs[:2], 0)
			require.NoError(t, again(r))
			assert.Equal(t, 2, fixture.Count(t, db.Pool, notAsBefore))
			require.NoError(t, other.Commit(t.Context()))
			require.Eventually(t, func() bool {
				return assert.NoError(t, again(r)) && fixture.Count(t, db.Pool, notAsBefore) == 1
			}, pgtest.Patience, 20*time.Millisecond)
			assert.Equal(t, 1, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'leased'`, jobs[2].ID), "it is being worked")
		})
	}
}

// TestTurnThatEndsLeavesNothingBehind: what a turn could not give back at its end is given back
// soon after, although no fetch reclaims it.
func TestTurnThatEndsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 2)
	r, jobs := leasing(t, e, 2)
	other := locking(t, db, jobs[0].ID)
	require.NoError(t, r.leases.giveBackAll(t.Context(), nil, r.leases.heldBy()))
	assert.Equal(t, []string{"run/0/1"}, r.tally.soFar().LeftBehind)
	require.NoError(t, other.Commit(t.Context()))
	require.Eventually(t, func() bool { return fixture.Count(t, db.Pool, notAsBefore) == 0 }, pgtest.Patience,
		20*time.Millisecond)
}

// TestDetachedTurnThatFailsLeavesNothingBehind: no later activity takes what it holds, and its jobs
// are not charged, because their worker lives.
func TestDetachedTurnThatFailsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 2)
	r, _ := leasing(t, e, 2)
	_, r.cancelWork = context.WithCancel(t.Context())
	r.endDetached(t.Context(), errors.New("the database said no"), func() {})
	require.Eventually(t, func() bool { return fixture.Count(t, db.Pool, notAsBefore) == 0 }, pgtest.Patience,
		20*time.Millisecond)
}

// TestWhatIsLockedForLongIsGivenBackLater: for as long as another transaction has rows of an ended
// turn locked, they are tried again.
func TestWhatIsLockedForLongIsGivenBackLater(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 1)
	r, jobs := leasing(t, e, 1)
	other := locking(t, db, jobs[0].ID)
	assert.True(t, e.reclaimNow(r.leases.heldBy()))
	require.NoError(t, other.Commit(t.Context()))
	assert.False(t, e.reclaimNow(r.leases.heldBy()))
	assert.Zero(t, fixture.Count(t, db.Pool, notAsBefore))
}

// cutOff is a Kind whose transactions lose their connection while they commit: tx is the last one.
type cutOff struct {
	Kind
	db *pgtest.DB
	tx pgx.Tx
}

func (k *cutOff) InTxWaiting(ctx context.Context, _ time.Duration, f func(pgx.Tx) error) (err error) {
	if k.tx, err = k.db.Pool.Begin(ctx); err != nil {
		return err
	}
	return errors.Join(f(k.tx), errors.New("the connection was lost"))
}

// TestRescueThatIsCommittedLate: the transaction that leases the jobs of a lost pick may be
// committed after the turn has asked what it holds. Nothing works those jobs, so they are given
// back.
func TestRescueThatIsCommittedLate(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 1)
	k := &cutOff{Kind: e.kind, db: db}
	e.kind = k
	r := e.newRunner(TurnRequest{
		Turn: store.Turn{ID: "run/0/1", Fence: 1, Begins: true}, Batch: 50, Length: time.Minute,
		Linger: true,
	}, e.waker.Subscribe(), nil)
	pick, err := k.PickTypes(t.Context(), 1, func(string) bool { return true }, e.room)
	require.NoError(t, err)
	lost, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	jobs, err := pick.Lock(t.Context(), lost)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.NoError(t, lost.Rollback(t.Context()))

	assert.Empty(t, r.rescue(t.Context(), jobs, errors.New("the connection was lost")))
	require.NoError(t, k.tx.Commit(t.Context()))
	require.Equal(t, 1, fixture.Count(t, db.Pool, notAsBefore))
	require.NoError(t, r.giveBack(t.Context()))
	assert.Zero(t, fixture.Count(t, db.Pool, notAsBefore))
}
