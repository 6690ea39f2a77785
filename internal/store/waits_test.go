package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// While nothing waits, a worker that asks what is to be decided reads one index, and calls no function in a transaction.
func TestNothingThatWaitsCostsAProbe(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := store.NewQueue(db.Pool, store.Jobs)
	_, err := db.Pool.Exec(t.Context(), `
CREATE OR REPLACE FUNCTION daybook.check_waits(batch integer DEFAULT 500, OUT decided integer, OUT again integer) LANGUAGE plpgsql
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
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}')`).Scan(&first))
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}', after => ARRAY[$1])`, first).Scan(&after))
	require.NoError(t, store.NewCallback(t.Context(), db.Pool, after, "paid", "token", time.Hour))
	require.ErrorIs(t, store.NewCallback(t.Context(), db.Pool, "none", "paid", "other", time.Hour), store.ErrJobNotFound)
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM daybook.jobs WHERE id = $1`, after)
	require.NoError(t, err)
	var left int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM daybook.job_waits) + (SELECT count(*) FROM daybook.job_callbacks)`).Scan(&left))
	assert.Zero(t, left)
}
