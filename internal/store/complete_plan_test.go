package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestCompletementsReadNoOldAttempts plans a completion while the log of attempts is empty, and
// completes when it has grown: the plan that is kept must not walk the log.
func TestCompletementsReadNoOldAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.NeedStatistics(t, b.Pool)
	config := b.Pool.Config()
	config.MaxConns = 1 // one session, so that its plan is the one that is used again
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	one := &bundle{DB: b.DB, t: t, store: store.New(pool)}
	db := *b.Database
	db.Pool, one.DB = pool, &pgtest.DB{Database: &db}
	complete := func(outcome models.Outcome) {
		b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)
		turn := one.turn("turn")
		jobs := one.lease(turn, 10)
		require.Len(t, jobs, 10)
		completions := make([]store.Completion, len(jobs))
		for i, j := range jobs {
			completions[i] = store.Completion{Job: j, Outcome: outcome, Delay: time.Minute}
			if outcome != models.OutcomeCompleted {
				completions[i].Code, completions[i].Message = models.CodeDocumentNotReady, "not ready"
			}
		}
		require.NoError(t, one.completeAll(turn, completions...))
	}
	b.insert(`SELECT 'doc-' || n, 2, 0 FROM generate_series(1, 10) n`)
	b.exec(`VACUUM ANALYZE daybook.attempt_log`)
	complete(models.OutcomeRescheduled)
	b.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, started_at, worker, turn_id, fence)
SELECT 'old-' || n, 'org_1', 'old-' || n, 1, 1, 'completed', now(), '', 't', 1 FROM generate_series(1, 100000) n`)
	var before int64
	// A session hands in its statistics a moment after it has ended.
	require.Eventually(t, func() bool { before = b.attemptsRead(); return before > 100_000 }, pgtest.Patience,
		50*time.Millisecond)

	for range 5 {
		complete(models.OutcomeRescheduled)
	}
	complete(models.OutcomeCompleted)

	pool.Close() // a session hands in its statistics when it ends
	assert.Less(t, b.attemptsRead()-before, int64(1500), "pages of the log that were read for 60 completions")
	var times int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT max(times) FROM daybook.attempts`).Scan(&times))
	assert.Equal(t, 6, times)
}

// attemptsRead returns how many pages of the log of attempts and its indexes were read.
func (b *bundle) attemptsRead() (n int64) {
	b.t.Helper()
	b.Pool.Reset()
	const q = `
SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relid = 'daybook.attempt_log'::regclass`
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), q).Scan(&n))
	return n
}
