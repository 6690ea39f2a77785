package queue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// One by one and many at once, a job's named queue, its sequence and the jobs that it waits for are
// stored.
func TestJobsInOrderAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, second(queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{Name: "slow"})))
	first := b.newJob(welcome{}, queue.JobOptions{})
	options := queue.JobOptions{Queue: "slow", Sequence: "order-17", After: []string{first.ID}}
	many, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{
		{OrgID: org, Payload: welcome{UserID: "1"}, Options: options},
		{OrgID: org, Payload: welcome{UserID: "2"}},
		{
			OrgID: org, Payload: welcome{UserID: "3"},
			Options: queue.JobOptions{IdempotencyKey: "k", Queue: "slow", Sequence: "order-17", After: []string{first.ID}},
		},
	})
	require.NoError(t, err)
	for _, id := range []string{b.newJob(welcome{}, options).ID, many[0].ID, many[2].ID} {
		j := b.queued(id)
		assert.Equal(t, "slow", *j.Queue)
		assert.Equal(t, "order-17", *j.Sequence)
		assert.True(t, j.Waits())
		assert.WithinRange(t, j.FirstReadyAt, j.CreatedAt.Add(-hour), j.CreatedAt.Add(hour))
		assert.Equal(t, []string{first.ID}, b.awaited(id))
	}
	plain := b.queued(many[1].ID)
	assert.Nil(t, plain.Queue)
	assert.Nil(t, plain.Sequence)
	assert.False(t, plain.Waits() || plain.Awaited)
}

// Requests that are wrong are refused, by Go and by SQL.
func TestJobsInOrderThatAreWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for want, o := range map[error]queue.JobOptions{
		queue.ErrInvalidQueue:    {Queue: "my queue"},
		queue.ErrSequenceTooLong: {Sequence: strings.Repeat("k", 256)},
		queue.ErrInvalidAfter:    {After: make([]string, models.MaxAwaited+1)},
		queue.ErrJobNotFound:     {After: []string{"unknown"}},
	} {
		_, err := queue.EnqueueJob(t.Context(), b.Pool, org, welcome{}, o)
		assert.ErrorIs(t, err, want)
		_, err = queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{{OrgID: org, Payload: welcome{}, Options: o}})
		assert.ErrorIs(t, err, want)
	}
	for _, arguments := range []string{
		`queue => 'my queue'`, `queue => ''`, `sequence => ''`, `sequence => repeat('k', 256)`,
		`after => array_fill('x'::text, ARRAY[101])`,
		`after => ARRAY[NULL]::text[]`,
	} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('o', 'mail', '{}', `+arguments+`)`)
		assert.ErrorContains(t, err, "DB010", arguments)
	}
	_, err := b.Pool.Exec(t.Context(),
		`SELECT daybook.enqueue_jobs(ARRAY['o'], ARRAY['mail'], ARRAY['{}']::jsonb[], afters => ARRAY['{}']::jsonb[])`)
	assert.ErrorContains(t, err, "DB010")
	other, err := queue.EnqueueJob(t.Context(), b.Pool, "org_2", welcome{}, queue.JobOptions{})
	require.NoError(t, err)
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org, welcome{}, queue.JobOptions{After: []string{other.ID}})
	assert.ErrorIs(t, err, queue.ErrJobNotFound, "a job of another organization")
}

// awaited reads the ids of the jobs that a job waits for.
func (b *bundle) awaited(id string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `SELECT awaits FROM daybook.job_waits WHERE job_id = $1 ORDER BY awaits`, id)
	require.NoError(b.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return ids
}

// An application's transaction that has passed the turn of a sequence on, or ended its last job, and
// stays open keeps no worker from deciding about it: that is left for later, and others are decided.
func TestOpenTransactionOfASequenceHoldsUpNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs := store.NewQueue(b.Pool, store.Jobs)
	waits := func(id string) bool {
		j := b.queued(id)
		return j.Waits()
	}
	decide := func() (c store.CheckedWaits) {
		require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '100ms'`); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `SELECT decided, again FROM daybook.check_waits()`).Scan(&c.Decided, &c.Again)
		}))
		return c
	}
	first := map[string]string{}
	for _, sequence := range []string{"one", "two"} {
		first[sequence] = b.newJob(welcome{}, queue.JobOptions{Sequence: sequence}).ID
	}
	b.newJob(welcome{}, queue.JobOptions{Sequence: "two"})
	decide()
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, id := range first {
		_, err := queue.CancelJob(t.Context(), tx, id)
		require.NoError(t, err)
	}
	next := b.newJob(welcome{}, queue.JobOptions{Sequence: "one"}).ID
	b.newJob(welcome{}, queue.JobOptions{Sequence: "two"})
	other := b.newJob(welcome{}, queue.JobOptions{Sequence: "three"}).ID
	assert.Equal(t, 2, decide().Again)
	assert.False(t, waits(other))
	assert.True(t, waits(next))
	require.NoError(t, tx.Commit(t.Context()))
	_, err = jobs.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.False(t, waits(next), "it is its turn")
}
