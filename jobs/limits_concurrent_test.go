package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestLimitHoldsWhateverCommitsFirst: while transactions enqueue jobs of the same keys, or roll that
// back, others end such jobs and others again give out places, no snapshot sees more of a key than
// its limit says, and none is left in line.
func TestLimitHoldsWhateverCommitsFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const parallel, rounds = 2, 25
	b.limit(jobs.Limit{By: "payload.name", Parallel: parallel})
	group, ctx := errgroup.WithContext(t.Context())
	for n := range 3 {
		group.Go(func() error { return b.enqueueOrNot(ctx, n, rounds) })
	}
	for n := range 4 {
		group.Go(func() error {
			for range 4 * rounds {
				if err := b.endAdmitted(ctx, []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead}[n%4/3]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 2 {
		group.Go(func() error {
			for range 2 * rounds {
				if _, err := b.Pool.Exec(ctx, `SELECT daybook.check_waits()`); err != nil {
					return err
				}
				if most := b.mostOfAKey(ctx); most > parallel {
					return fmt.Errorf("%d jobs of a key hold places, not %d", most, parallel)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for range 1000 {
		if b.count(open) == 0 {
			break
		}
		b.exec(`SELECT daybook.check_waits()`)
		require.LessOrEqual(t, b.mostOfAKey(t.Context()), parallel)
		require.NoError(t, b.endAdmitted(t.Context(), pgx.ReadCommitted))
	}
	assert.Equal(t, 0, b.count(open), "no job is left in line")
}

// mostOfAKey is how many places are taken of the key of which the most are; -1: that cannot be read.
func (b *bundle) mostOfAKey(ctx context.Context) int {
	const stmt = `
SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM daybook.jobs WHERE finished_at IS NULL AND fleet >= 0 GROUP BY limit_key) k`
	most := -1
	_ = b.Pool.QueryRow(ctx, stmt).Scan(&most) // the context has ended
	return most
}

// enqueueOrNot enqueues jobs of three keys in transactions, of which each third rolls back.
func (b *bundle) enqueueOrNot(ctx context.Context, n, rounds int) error {
	const stmt = `
SELECT count(*) FROM daybook.enqueue_jobs(array_fill($1::text, '{7}'), array_fill('greet'::text, '{7}'),
                                          ARRAY(SELECT jsonb_build_object('name', 'key ' || i % 3) FROM generate_series(1, 7) i))`
	for round := range rounds {
		tx, err := b.Pool.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, stmt, org)
		if err == nil && (n+round)%3 > 0 {
			err = tx.Commit(ctx)
		}
		_ = tx.Rollback(context.WithoutCancel(ctx)) // after a commit it does nothing
		if err != nil {
			return err
		}
	}
	return nil
}

// endAdmitted completes up to five jobs that hold places, at a level of isolation.
func (b *bundle) endAdmitted(ctx context.Context, level pgx.TxIsoLevel) error {
	const stmt = `
UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp(), run_count = 1
 WHERE id = ANY (ARRAY(SELECT id FROM daybook.jobs WHERE state = 'pending' AND fleet >= 0 ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED))`
	err := pgx.BeginTxFunc(ctx, b.Pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, stmt)
		return err
	})
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "40001" {
		return nil // it has ended none
	}
	return err
}

// TestLimitedJobsThatCome: of many jobs that come at once, each key's first ones by priority are
// admitted, and an end tells the line of its key and those that wait for the job.
func TestLimitedJobsThatCome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{Parallel: 2})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	low := b.enqueue(greet{Name: "low"}, queue.JobOptions{LimitKey: "k", Priority: queue.Low})
	normal := b.enqueue(greet{Name: "normal"}, queue.JobOptions{LimitKey: "k"})
	high := b.enqueue(greet{Name: "high"}, queue.JobOptions{LimitKey: "k", Priority: queue.High})
	other := b.enqueue(greet{Name: "other"}, queue.JobOptions{LimitKey: "other", Priority: queue.Low})
	after := b.enqueue(greet{Name: "after"}, queue.JobOptions{After: []string{high}})
	b.check()
	fleet := func(id string) int {
		return b.count(`SELECT fleet FROM daybook.jobs WHERE id = $1`, id)
	}
	assert.Equal(t, []int{-2, 0, 0, 0}, []int{fleet(low), fleet(normal), fleet(high), fleet(other)})
	b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp(), run_count = 1 WHERE id = $1`, high)
	assert.Equal(t, 0, fleet(low), "the end passes its place on")
	b.work()
	for _, id := range []string{low, normal, other, after} {
		assert.Equal(t, models.JobCompleted, b.row(id).State)
	}
}

// TestPlaceIsPassedOnOnce: while another transaction gives out a place, an attempt that failed leaves
// the line no more than the place that it held.
func TestPlaceIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	b.keyed(6, "k")
	b.check()
	b.exec(lease)
	b.exec(`SELECT daybook.set_job_limit('greet', by => 'payload.name', parallel => 2)`)
	b.exec(`DELETE FROM daybook.job_wait_checks`)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // after the commit it does nothing
	_, err = tx.Exec(t.Context(), `SELECT daybook.admit_limited('greet', $1, 'k')`, org)
	require.NoError(t, err)
	b.exec(`
UPDATE daybook.jobs SET state = 'pending', turn_id = NULL, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
 WHERE state = 'leased'`)
	require.NoError(t, tx.Commit(t.Context()))
	assert.Equal(t, 2, b.count(admitted))
}

// lease has what holds places leased.
const lease = `
UPDATE daybook.jobs
   SET state = 'leased', turn_id = 'turn', fence = 1, worker = 'w', leased_generation = generation, run_count = 1, attempt_started_at = clock_timestamp(),
       last_attempted_at = clock_timestamp()
 WHERE fleet >= 0`

// TestLimitedJobsOfOneTime: of more jobs than are decided at once that were due at one time, long ago,
// all take their places.
func TestLimitedJobsOfOneTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	b.exec(`SELECT count(*) FROM daybook.enqueue_jobs(array_fill($1::text, '{1100}'), array_fill('greet'::text, '{1100}'),
    ARRAY(SELECT jsonb_build_object('name', 'key ' || i) FROM generate_series(1, 1100) i), ready_ats => array_fill(now() - interval '1 hour', '{1100}'))`, org)
	b.exec(`UPDATE daybook.jobs SET ready_at = now() - interval '1 hour'`)
	for range 5 {
		_, err := b.store.CheckWaits(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, 1100, b.count(admitted))
}

// TestCrowdOfAKeyHoldsUpNoOtherKey: a key whose jobs all come at once does not keep those of others,
// that come later, from their places; nor do jobs that are due tomorrow.
func TestCrowdOfAKeyHoldsUpNoOtherKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	b.keyed(3000, "crowd")
	b.keyed(1, "other")
	_, err := b.store.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, b.count(admitted+` AND limit_key = 'other'`))
	assert.Equal(t, 1, b.count(admitted+` AND limit_key = 'crowd' AND created_at = (SELECT min(created_at) FROM daybook.jobs)`), "the first one")
}
