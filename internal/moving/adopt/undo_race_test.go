package adopt_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
)

// giveBackBeside gives rows back, and runs work when the first statement that reads the adopted
// rows has its snapshot, and has locked nothing yet.
func giveBackBeside(t *testing.T, db *pgtest.DB, a adopt.Adopter, work func()) adopt.Step {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), `
ALTER TABLE daybook.adopted_rows RENAME TO all_adopted_rows;
CREATE FUNCTION daybook.wait_for_work() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_lock_shared(4711), pg_advisory_unlock_shared(4711); RETURN true; END';
CREATE VIEW daybook.adopted_rows AS SELECT * FROM daybook.all_adopted_rows WHERE daybook.wait_for_work()`)
	require.NoError(t, err)
	gate, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	_, err = gate.Exec(t.Context(), `SELECT pg_advisory_lock(4711)`)
	require.NoError(t, err)
	type result struct {
		step adopt.Step
		err  error
	}
	done := make(chan result, 1)
	go func() {
		step, err := a.GiveBack(t.Context(), "")
		done <- result{step, err}
	}()
	waits := func() bool {
		return fixture.Count(t, db.Pool,
			`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
	}
	require.Eventually(t, waits, pgtest.Patience, 5*time.Millisecond)
	work()
	require.NoError(t, gate.Close(t.Context()))
	r := <-done
	require.NoError(t, r.err)
	return r.step
}

// TestUndoBesideAPosting: a document that Daybook posts while its row is about to be given back
// stays.
func TestUndoBesideAPosting(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 40)
	l.apply(options())
	l.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() + interval '1 hour' WHERE state = 'pending' AND document_id <> 'doc-8'`)
	r := giveBackBeside(t, l.DB, l.adopter(options()), l.workOnce)
	assert.EqualValues(t, 39, r.Done.Rows())
	require.Len(t, r.Problems, 1)
	assert.Equal(t, "POSTED_HERE", r.Problems[0].Code)
	assert.NotEmpty(t, fixture.Impacts(t, l.Pool, "org_c", "doc-8"))
	assert.Equal(t, "cancelled", l.state("doc-8"), "Daybook holds it")
}

// TestUndoBesideAnAttempt: an operation that Daybook tries while its row is about to be given back
// stays.
func TestUndoBesideAnAttempt(t *testing.T) {
	t.Parallel()
	o := newOperations(t)
	o.exec(`INSERT INTO async_operations (operation_type, payload) VALUES ('thumbnail', '{}'), ('thumbnail', '{}')`)
	o.apply(adopt.OperationsOptions{})
	r := giveBackBeside(t, o.DB, o.adopter(adopt.OperationsOptions{}), func() {
		var id string
		require.NoError(t, o.Pool.QueryRow(t.Context(), `SELECT id FROM daybook.jobs LIMIT 1`).Scan(&id))
		o.exec(`SELECT daybook.lease_async_operation($1)`, id)
		o.exec(`SELECT daybook.fail_async_operation($1, 'rate limited')`, id)
		require.Equal(t, 1, o.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND run_count = 1`))
	})
	assert.EqualValues(t, 1, r.Done.Rows())
	require.Len(t, r.Problems, 1)
	assert.Equal(t, "WORKED_HERE", r.Problems[0].Code)
}
