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
