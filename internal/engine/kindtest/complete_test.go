package kindtest

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// completeContracts are about how attempts end.
var completeContracts = []contract{
	{"each outcome", outcomes, nil},
	{"all or nothing", allOrNothing, nil},
	{"only under the own fence, and once", ownFence, nil},
	{"with what the attempt wrote, or not at all", withTheEffect, nil},
	{"jobs are locked first", lockChunk, nil},
	{"without a lock before", unlocked, nil},
	{"messages are clipped", messagesAreClipped, nil},
	{"an attempt rescheduled for the same reason is folded", folded, []notion{attemptLog}},
	{"an attempt that counts is a row of its own", notFolded, []notion{attemptLog}},
	{"what was put off because of the database", putOff, nil},
}

func outcomes(b *bundle) {
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 6)
	unlogged := later
	unlogged.Unlogged = true
	cancelled := store.Completion{Outcome: models.OutcomeCancelled}
	want := []struct {
		completion store.Completion
		state      models.JobState
		attempts   int
	}{
		{done, models.JobCompleted, 1},
		{retry, models.JobPending, 1},
		{later, models.JobPending, 0},
		{failed, models.JobFailed, 1},
		{unlogged, models.JobPending, 0},
		{cancelled, models.JobCancelled, 1},
	}
	if !b.has(requests) {
		want = want[:5]
	}
	completions := make([]store.Completion, len(want))
	for i := range want {
		completions[i] = want[i].completion
		completions[i].Job = jobs[i]
	}
	var completed store.Completed
	require.NoError(b.t, b.kind.InTx(b.t.Context(), func(tx pgx.Tx) (err error) {
		completed, err = b.kind.Complete(b.t.Context(), tx, turn, completions, store.Access{})
		return err
	}))
	counts := store.Completed{
		models.OutcomeCompleted: 1, models.OutcomeRetried: 1, models.OutcomeRescheduled: 2,
		models.OutcomeFailed: 1,
	}
	if b.has(requests) {
		counts[models.OutcomeCancelled] = 1
	}
	assert.Equal(b.t, counts, completed)
	for i, w := range want {
		s, got, log := w.completion, b.read(jobs[i].ID), b.log(jobs[i].ID)
		assert.Equal(b.t, w.state, got.State, s.Outcome)
		if b.has(attemptLog) {
			assert.Equal(b.t, s.Code, got.Code, s.Outcome)
			assert.Equal(b.t, s.Message, got.Error, s.Outcome)
		}
		assert.Empty(b.t, got.Turn, s.Outcome)
		assert.Equal(b.t, w.attempts, got.Attempts, s.Outcome)
		if w.state == models.JobPending {
			assert.InDelta(b.t, s.Delay.Seconds(), got.Due, 30, "%s: it is due again", s.Outcome)
		}
		if s.Unlogged || !b.has(attemptLog) {
			assert.Empty(b.t, log)
			continue
		}
		require.Len(b.t, log, 1, s.Outcome)
		assert.Equal(b.t, attempt{
			Attempt: 1, Outcome: s.Outcome, Code: s.Code, Error: s.Message, Times: 1, Turn: turn.ID,
			Fence: turn.Fence,
		}, log[0])
	}
}

// One job that is no longer the turn's refuses all.
func allOrNothing(b *bundle) {
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 3)
	_, err := b.complete(turn, done, jobs[1])
	require.NoError(b.t, err)
	_, err = b.complete(turn, done, jobs...)
	require.ErrorIs(b.t, err, store.ErrLeaseLost)
	b.counts(2, models.JobLeased)
	assert.Empty(b.t, b.log(jobs[0].ID))
	if b.has(attemptLog) {
		assert.Len(b.t, b.log(jobs[1].ID), 1)
	}
}

func ownFence(b *bundle) {
	turn := b.turn("run/0/1")
	j := b.leased(turn, 1)[0]
	for name, other := range others(turn) {
		_, err := b.complete(other, done, j)
		require.ErrorIs(b.t, err, store.ErrLeaseLost, name)
	}
	before := j
	before.Attempt++
	_, err := b.complete(turn, done, before)
	require.ErrorIs(b.t, err, store.ErrLeaseLost, "another attempt")
	_, err = b.complete(turn, done, j)
	require.NoError(b.t, err)
	_, err = b.complete(turn, done, j)
	require.ErrorIs(b.t, err, store.ErrLeaseLost, "completed already")
}

func withTheEffect(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 2)
	_, err := b.Pool.Exec(ctx, `CREATE TABLE public.effects (id text PRIMARY KEY); GRANT ALL ON public.effects TO PUBLIC`)
	require.NoError(b.t, err)
	work := func(turn store.Turn, j store.Job) error {
		return b.kind.InTx(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO public.effects VALUES ($1)`, j.ID); err != nil {
				return err
			}
			_, err := b.kind.Complete(ctx, tx, turn, all(done, []store.Job{j}), store.Access{})
			return err
		})
	}
	require.NoError(b.t, work(turn, jobs[0]))
	require.ErrorIs(b.t, work(others(turn)["a lower fence"], jobs[1]), store.ErrLeaseLost)
	var effects []string
	require.NoError(b.t, b.Pool.QueryRow(ctx, `SELECT array_agg(id) FROM public.effects`).Scan(&effects))
	assert.Equal(b.t, []string{jobs[0].ID}, effects)
}

func lockChunk(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 4)
	_, err := b.complete(turn, done, jobs[3])
	require.NoError(b.t, err)
	if b.has(requests) {
		require.NoError(b.t, b.cancel(ctx, b.Pool, jobs[1].ID))
	}
	b.locking(func() {
		require.NoError(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) error {
			locked, err := b.kind.LockChunk(ctx, tx, turn, ids(jobs))
			assert.ElementsMatch(b.t, ids(jobs[:2]), ids(locked), "what is locked or no longer the turn's is left out")
			for _, j := range locked {
				assert.Equal(b.t, j.ID == jobs[1].ID && b.has(requests), j.CancelRequested)
				assert.Equal(b.t, 1, j.Attempt)
			}
			n, releaseErr := b.open().GiveBack(ctx, turn, ids(jobs[:2]), 0)
			assert.NoError(b.t, releaseErr)
			assert.Zero(b.t, n, "no other transaction has them until this one ends")
			return err
		}))
	}, jobs[2].ID)
	for name, other := range others(turn) {
		require.NoError(b.t, b.kind.InTx(ctx, func(tx pgx.Tx) error {
			locked, err := b.kind.LockChunk(ctx, tx, other, ids(jobs))
			assert.Empty(b.t, locked, name)
			return err
		}))
	}
}

func unlocked(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 3)
	try := func(patience time.Duration, jobs ...store.Job) error {
		return b.kind.InTx(ctx, func(tx pgx.Tx) error {
			_, err := b.kind.Complete(ctx, tx, turn, all(done, jobs), store.Access{Wait: patience, Commit: true})
			return err
		})
	}
	b.locking(func() {
		err := try(50*time.Millisecond, jobs[:2]...)
		require.ErrorIs(b.t, err, store.ErrRowHeld)
		assert.False(b.t, store.IsTransient(err))
	}, jobs[0].ID)
	b.counts(3, models.JobLeased)
	if b.has(requests) {
		require.NoError(b.t, b.cancel(ctx, b.Pool, jobs[2].ID))
		require.ErrorIs(b.t, try(time.Minute, jobs...), store.ErrLeaseLost, "one is to be cancelled")
	}
	b.counts(3, models.JobLeased)
	// It waits for a row that is unlocked in time.
	tx, err := b.Pool.Begin(ctx)
	require.NoError(b.t, err)
	require.NoError(b.t, b.lock(ctx, tx, jobs[0].ID))
	ended := make(chan error, 1)
	go func() { ended <- try(time.Minute, jobs[:2]...) }()
	b.eventually(func() bool {
		var waits bool
		err := b.Pool.QueryRow(ctx,
			`SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock')`,
			b.Name).Scan(&waits)
		return assert.NoError(b.t, err) && waits
	}, "it waits")
	require.NoError(b.t, tx.Rollback(ctx))
	require.NoError(b.t, <-ended)
	b.counts(2, models.JobCompleted)
}

// What a message may contain does not keep its job from being completed.
func messagesAreClipped(b *bundle) {
	turn := b.turn("run/0/1")
	messages := []string{"before\x00after", "before\xff\xfeafter", strings.Repeat("€", 100_000), ""}
	for i, j := range b.leased(turn, len(messages)) {
		_, err := b.complete(turn,
			store.Completion{Outcome: models.OutcomeFailed, Code: models.CodeProcessorError, Message: messages[i]}, j)
		require.NoError(b.t, err)
		kept := b.read(j.ID).Error
		assert.LessOrEqual(b.t, len(kept), 4096+len("…"))
		assert.NotContains(b.t, kept, "\x00")
	}
}

// look leases the only job, and completes it as s says. It returns the turn.
func (b *bundle) look(id string, s store.Completion) store.Turn {
	b.t.Helper()
	require.NoError(b.t, b.due(b.t.Context(), id, 0))
	turn := b.turn("turn")
	var jobs []store.Job
	b.eventually(func() bool {
		jobs = b.lease(turn, 1)
		return len(jobs) > 0
	}, "it is leased")
	_, err := b.complete(turn, s, jobs...)
	require.NoError(b.t, err)
	return turn
}

// A job that is not ready, or that snoozes, leaves one row however often it is looked at.
func folded(b *bundle) {
	id := b.one(org, "key", 2, 0)
	first := b.look(id, later)
	require.Equal(b.t, []attempt{{
		1, models.OutcomeRescheduled, later.Code, later.Message, 1, first.ID, first.Fence,
		false,
	}}, b.log(id))
	var last store.Turn
	again := later
	again.Message = "still not"
	for range 99 {
		last = b.look(id, again)
	}
	assert.Equal(b.t, []attempt{{1, models.OutcomeRescheduled, later.Code, "still not", 100, last.ID, last.Fence, true}},
		b.log(id), "the row is the last one's")
	other := later
	other.Code = models.CodeTimeout
	b.look(id, other)
	b.look(id, later)
	log := b.log(id)
	require.Len(b.t, log, 3, "another reason is a row of its own, and so is what follows it")
	assert.Equal(b.t, 1, log[1].Times)
	assert.Equal(b.t, 1, log[2].Times)
}

func notFolded(b *bundle) {
	id := b.one(org, "key", 2, 0)
	for range 3 {
		b.look(id, retry)
	}
	log := b.log(id)
	require.Len(b.t, log, 3)
	for i, a := range log {
		assert.Equal(b.t, i+1, a.Attempt)
		assert.Equal(b.t, 1, a.Times)
	}
}

func putOff(b *bundle) {
	id := b.one(org, "key", 2, 0)
	count := func() int {
		n, err := b.kind.PutOff(b.t.Context(), id, 1)
		require.NoError(b.t, err)
		return n
	}
	assert.Zero(b.t, count())
	for range 3 {
		b.look(id, later)
	}
	assert.Equal(b.t, 3, count())
}
