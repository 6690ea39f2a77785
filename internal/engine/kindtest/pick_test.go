package kindtest

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// pickContracts are about jobs that are locked, worked and completed in one transaction, without a
// lease.
var pickContracts = []contract{
	{"jobs are completed in the transaction that picked them", picked, []notion{picks}},
	{"their completion commits the transaction that picked them", pickCommits, []notion{picks}},
	{"a transaction that fails leaves them as they were", pickFails, []notion{picks}},
	{"a transaction that was lost is told of to the next one", pickDropped, []notion{picks}},
	{"no other caller has them meanwhile", pickExcludes, []notion{picks}},
	{"what is counted is not picked", pickCounted, []notion{picks}},
	{"an organization that is held back is left alone", heldBack, []notion{picks}},
	{"an empty pick says when to look again", pickOutlook, []notion{picks}},
}

// jobType is the type of the suite's jobs, "" where there are no types.
func (b *bundle) jobType() string {
	b.t.Helper()
	b.filled("typed", 3, 1)
	kind, turn := b.open(), b.turn("run/type/1")
	leased, err := kind.LeaseFor(b.t.Context(), turn, 1, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.Len(b.t, leased.Jobs, 1)
	return leased.Jobs[0].Type
}

// pick picks up to limit jobs, as soon as some are found.
func (b *bundle) pick(kind engine.Kind, limit int, jobType string) *store.Pick {
	b.t.Helper()
	var pick *store.Pick
	b.eventually(func() bool {
		var err error
		pick, err = kind.PickTypes(b.t.Context(), limit, func(t string) bool { return t == jobType }, pgtest.Unbounded())
		require.NoError(b.t, err)
		return !pick.Empty()
	}, "something is picked")
	return pick
}

func picked(b *bundle) {
	jobType := b.jobType()
	b.filled(org, 2, 5)
	turn := b.turn("run/0/1")
	pick := b.pick(b.kind, 5, jobType)
	var completed store.Completed
	require.NoError(b.t, b.kind.InTx(b.t.Context(), func(tx pgx.Tx) error {
		picked, err := pick.Lock(b.t.Context(), tx)
		require.NoError(b.t, err)
		require.Len(b.t, picked, 5)
		for _, j := range picked {
			assert.Equal(b.t, 1, j.Attempt)
			assert.False(b.t, j.StartedAt.IsZero())
			assert.False(b.t, j.Dropped)
		}
		completions := append(all(done, picked[:2]), all(retry, picked[2:3])...)
		completions = append(append(completions, all(later, picked[3:4])...), all(failed, picked[4:])...)
		completed, err = b.kind.Complete(b.t.Context(), tx, turn, completions, store.Access{Picked: true})
		return err
	}))
	assert.Equal(b.t, store.Completed{
		models.OutcomeCompleted: 2, models.OutcomeRetried: 1, models.OutcomeRescheduled: 1,
		models.OutcomeFailed: 1,
	}, completed)
	for n, want := range []struct {
		state    models.JobState
		attempts int
		code     models.ErrorCode
	}{
		{models.JobCompleted, 1, ""},
		{models.JobCompleted, 1, ""},
		{models.JobPending, 1, retry.Code},
		{models.JobPending, 0, later.Code},
		{models.JobFailed, 1, failed.Code},
	} {
		id := b.filledID(org, 2, n+1)
		j, log := b.read(id), b.log(id)
		assert.Equal(b.t, want.state, j.State, id)
		assert.Equal(b.t, want.attempts, j.Attempts, id)
		assert.Equal(b.t, want.code, j.Code, id)
		assert.Empty(b.t, j.Turn, id)
		require.Len(b.t, log, 1, id)
		assert.Equal(b.t, turn.ID, log[0].Turn)
		assert.Equal(b.t, turn.Fence, log[0].Fence)
	}
	// None of them was leased at any time, and none can be completed twice.
	held, err := b.kind.Held(b.t.Context(), turn)
	require.NoError(b.t, err)
	assert.Empty(b.t, held)
	_, err = b.complete(turn, done, store.Job{ID: b.filledID(org, 2, 1), Attempt: 1, StartedAt: time.Now()})
	assert.ErrorIs(b.t, err, store.ErrLeaseLost)
}

func pickCommits(b *bundle) {
	jobType := b.jobType()
	b.filled(org, 2, 2)
	b.filled("later", 2, 1)
	later := b.turn("run/0/2")
	leased, err := b.open().LeaseFor(b.t.Context(), later, 1, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.Len(b.t, leased.Jobs, 1)
	complete := func(more []store.Job) (completed []string, err error) {
		pick := b.pick(b.kind, 1, jobType)
		err = b.kind.InTx(b.t.Context(), func(tx pgx.Tx) error {
			jobs, err := pick.Lock(b.t.Context(), tx)
			require.NoError(b.t, err)
			completed = ids(jobs)
			_, err = b.kind.Complete(b.t.Context(), tx, b.turn("run/0/1"), all(done, append(jobs, more...)),
				store.Access{Picked: true, Commit: true})
			return err
		})
		if err != nil {
			pick.Undo()
		}
		return completed, err
	}
	first, err := complete(leased.Jobs)
	require.ErrorIs(b.t, err, store.ErrLeaseLost, "another turn has leased one of them")
	b.pending(first[0], 0, "nothing was committed")
	for range 2 {
		some, err := complete(nil)
		require.NoError(b.t, err)
		assert.Equal(b.t, models.JobCompleted, b.read(some[0]).State)
	}
}

func pickFails(b *bundle) {
	jobType := b.jobType()
	b.filled(org, 2, 3)
	pick := b.pick(b.kind, 10, jobType)
	wrong := errors.New("the effect failed")
	err := b.kind.InTx(b.t.Context(), func(tx pgx.Tx) error {
		picked, err := pick.Lock(b.t.Context(), tx)
		require.NoError(b.t, err)
		_, err = b.kind.Complete(b.t.Context(), tx, b.turn("run/0/1"), all(done, picked), store.Access{Picked: true})
		return errors.Join(err, wrong)
	})
	require.ErrorIs(b.t, err, wrong)
	pick.Undo()
	id := b.filledID(org, 2, 1)
	b.pending(id, 0, "as it was")
	assert.Empty(b.t, b.log(id), "nothing is logged")
	assert.Equal(b.t, []string{id}, ids(b.lease(b.turn("run/0/2"), 1)), "it is found at once, in its place")
}

// A job that ends its worker while it is picked ends the session that has it locked.
func pickDropped(b *bundle) {
	ctx, jobType := b.t.Context(), b.jobType()
	b.filled(org, 2, 3)
	dropped := func(kind engine.Kind, end func(tx pgx.Tx) error) (were []bool) {
		b.t.Helper()
		// The session that died before lets its rows go when it has ended.
		b.eventually(func() bool {
			pick := b.pick(kind, 3, jobType)
			_ = kind.InTx(ctx, func(tx pgx.Tx) error {
				picked, err := pick.Lock(ctx, tx)
				require.NoError(b.t, err)
				for _, j := range picked {
					were = append(were, j.Dropped)
				}
				if len(picked) == 0 {
					return nil
				}
				return end(tx)
			})
			pick.Undo()
			return len(were) > 0
		}, "something is locked")
		return were
	}
	die := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		assert.Error(b.t, err)
		return err
	}
	leaveAlone := func(pgx.Tx) error { return nil }
	no, yes := []bool{false, false, false}, []bool{true, true, true}
	assert.Equal(b.t, no, dropped(b.kind, leaveAlone))
	assert.Equal(b.t, no, dropped(b.kind, die), "a transaction that leaves them alone is not lost")
	assert.Equal(b.t, yes, dropped(b.open(), die), "another process is told")
	assert.Equal(b.t, yes, dropped(b.open(), leaveAlone), "and so is each one, until they are leased")
	turn := b.turn("run/0/1")
	leased := b.lease(turn, 3)
	require.Len(b.t, leased, 3)
	_, err := b.kind.GiveBack(ctx, turn, nil, 0)
	require.NoError(b.t, err)
	assert.Equal(b.t, no, dropped(b.open(), leaveAlone))
}

func pickExcludes(b *bundle) {
	jobType := b.jobType()
	b.filled(org, 2, 6)
	mine, other := b.pick(b.kind, 3, jobType), b.open()
	require.NoError(b.t, b.kind.InTx(b.t.Context(), func(tx pgx.Tx) error {
		first, err := mine.Lock(b.t.Context(), tx)
		require.NoError(b.t, err)
		require.Len(b.t, first, 3)
		theirs := b.pick(other, 6, jobType)
		require.NoError(b.t, other.InTx(b.t.Context(), func(tx pgx.Tx) error {
			second, err := theirs.Lock(b.t.Context(), tx)
			assert.NotEmpty(b.t, second)
			for _, id := range ids(second) {
				assert.NotContains(b.t, ids(first), id)
			}
			return err
		}))
		leased, err := other.LeaseFor(b.t.Context(), b.turn("run/1/1"), 6, pgtest.Unbounded())
		require.NoError(b.t, err)
		for _, id := range ids(leased.Jobs) {
			assert.NotContains(b.t, ids(first), id)
		}
		return nil
	}))
}

func pickCounted(b *bundle) {
	jobType := b.jobType()
	limit := 2
	b.change(func(tx pgx.Tx) error { _, err := store.CapOrganization(b.t.Context(), tx, org, &limit); return err })
	b.filled(org, 2, 5)
	b.eventually(func() bool {
		pick, err := b.kind.PickTypes(b.t.Context(), 10, func(t string) bool { return t == jobType }, pgtest.Unbounded())
		require.NoError(b.t, err)
		require.True(b.t, pick.Empty())
		return pick.Capped
	}, "it is said that what is due is counted")
	assert.Len(b.t, b.lease(b.turn("run/0/1"), 10), limit)
}

func heldBack(b *bundle) {
	jobType := b.jobType()
	b.filled(org, 2, 2)
	pick := b.pick(b.kind, 10, jobType)
	require.NoError(b.t, b.kind.InTx(b.t.Context(), func(tx pgx.Tx) error {
		picked, err := pick.Lock(b.t.Context(), tx)
		require.Len(b.t, picked, 2)
		return err
	}))
	pause, begun := b.kind.HoldBack(org)
	assert.True(b.t, begun)
	assert.Positive(b.t, pause)
	pick.LeaveAlone(false)
	_, begun = b.kind.HoldBack(org)
	assert.False(b.t, begun, "it is held back already")
	b.pending(b.filledID(org, 2, 1), 0, "nothing is written")
	// A process that knows of no hold takes them; so does this one when it has passed.
	b.eventually(func() bool { return len(b.lease(b.turn("run/0/1"), 10)) == 2 },
		"they are leased when the organization is tried again")
}

func pickOutlook(b *bundle) {
	jobType := b.jobType()
	b.one(org, "later", 2, 5*time.Minute)
	b.eventually(func() bool {
		pick, err := b.kind.PickTypes(b.t.Context(), 10, func(t string) bool { return t == jobType }, pgtest.Unbounded())
		require.NoError(b.t, err)
		require.True(b.t, pick.Empty())
		return pick.Wait() > 4*time.Minute && pick.Wait() < 5*time.Minute+time.Second
	}, "the pick says when the next job is due")
}
