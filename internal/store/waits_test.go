package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// While nothing waits, a worker that asks what is to be decided reads one index, and calls no
// function in a transaction.
func TestNothingThatWaitsCostsAProbe(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := store.NewQueue(db.Pool, store.Jobs)
	_, err := db.Pool.Exec(t.Context(), `
CREATE OR REPLACE FUNCTION daybook.check_waits(batch integer DEFAULT 500, beyond bigint DEFAULT 0, since timestamptz DEFAULT '-infinity', OUT decided integer, OUT again integer, OUT last bigint, OUT left_from timestamptz) LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'it is called'; END $$`)
	require.NoError(t, err)
	c, err := s.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.Zero(t, c)
	_, err = db.Pool.Exec(t.Context(), `INSERT INTO daybook.job_wait_checks (job_id) VALUES ('j')`)
	require.NoError(t, err)
	_, err = s.CheckWaits(t.Context())
	assert.ErrorContains(t, err, "it is called")
}

// What a job waited for goes with it, and no callback is asked for by a job that is not there.
func TestWhatARemovedJobWaitedForGoesWithIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var first, after string
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}')`).Scan(&first))
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}', after => ARRAY[$1])`, first).Scan(&after))
	require.NoError(t, store.NewCallback(t.Context(), db.Pool, after, "paid", "token", time.Hour))
	require.ErrorIs(t, store.NewCallback(t.Context(), db.Pool, "none", "paid", "other", time.Hour), store.ErrJobNotFound)
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM daybook.jobs WHERE id = $1`, after)
	require.NoError(t, err)
	var left int
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT (SELECT count(*) FROM daybook.job_waits) + (SELECT count(*) FROM daybook.job_callbacks)`).Scan(&left))
	assert.Zero(t, left)
}

// TestManyJobsThatWaitAreFoundByTheirKeys: a session whose plans were made while nothing waited
// holds and releases many jobs without reading, for each, all that wait.
func TestManyJobsThatWaitAreFoundByTheirKeys(t *testing.T) {
	t.Parallel()
	const batches, batch = 10, 500
	db := pgtest.New(t)
	pool, reads := fixture.Reads(t, db.Pool)
	var first string
	require.NoError(t, pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}')`).Scan(&first))
	// The index of what waits for a job is for one search a batch: searched for what one job waits
	// for, it is read to its end.
	byKeys := func(most int, f func()) {
		t.Helper()
		_, waits := reads("daybook.job_waits")
		_, jobs := reads("daybook.jobs")
		searched := fixture.Count(t, pool,
			`SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'job_waits_awaits'`)
		f()
		_, waitsRead := reads("daybook.job_waits")
		_, jobsRead := reads("daybook.jobs")
		assert.Equal(t, waits, waitsRead, "rows of job_waits read by scans of all of it")
		assert.Equal(t, jobs, jobsRead, "rows of jobs read by scans of all of it")
		assert.LessOrEqual(t, fixture.Count(t, pool,
			`SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'job_waits_awaits'`)-searched, most,
			"searches by awaits")
	}
	byKeys(batches, func() {
		for range batches {
			_, err := pool.Exec(t.Context(), `
SELECT FROM daybook.enqueue_jobs(array_fill('acme'::text, ARRAY[$2::int]), array_fill('mail'::text, ARRAY[$2::int]), array_fill('{}'::jsonb, ARRAY[$2::int]),
                                 afters => array_fill(jsonb_build_array($1::text), ARRAY[$2::int]))`, first, batch)
			require.NoError(t, err)
		}
	})
	s := store.NewQueue(pool, store.Jobs)
	byKeys(10*batches, func() {
		for checked := (store.CheckedWaits{Decided: 1}); checked.Decided+checked.Again > 0; {
			var err error
			checked, err = s.CheckWaits(t.Context())
			require.NoError(t, err)
		}
		_, err := pool.Exec(t.Context(), `SELECT set_config('enable_seqscan', 'off', false)`)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), `UPDATE daybook.jobs SET state = 'completed', finished_at = now() WHERE id = $1`,
			first)
		require.NoError(t, err)
		for checked := (store.CheckedWaits{Decided: 1}); checked.Decided+checked.Again > 0; {
			checked, err = s.CheckWaits(t.Context())
			require.NoError(t, err)
		}
	})
	assert.Zero(t, fixture.Count(t, pool,
		`SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'jobs_due'`),
		"rows read of the index that has all waiting jobs at one time")
	assert.Equal(t, batches*batch,
		fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND ready_at < now()`))
}
