package figures_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
)

// pages is how many pages the statements that count the kinds touch.
func pages(t *testing.T, db *pgtest.DB) int {
	t.Helper()
	total := 0
	for _, q := range store.Queues() {
		stmt, args := figures.CountStatement(q.Name)
		var plans []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		require.NoError(t, store.Begin(t.Context(), db.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off`); err != nil {
				return err
			}
			var text []byte
			if err := tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+stmt,
				args...).Scan(&text); err != nil {
				return err
			}
			return json.Unmarshal(text, &plans)
		}))
		total += plans[0].Plan.Hit + plans[0].Plan.Read
	}
	return total
}

// TestCountReadsNoCompletedJobs touches as many pages with 200,000 completed jobs as with none.
func TestCountReadsNoCompletedJobs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(stmt string) {
		t.Helper()
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	exec(`INSERT INTO daybook.jobs (org_id, type, payload, ready_at) SELECT 'o', 'email', '{}', now() - interval '1 minute' FROM generate_series(1, 500)`)
	exec(`VACUUM ANALYZE daybook.jobs, daybook.accounting_work_queue`)
	pages(t, db) // the first reads the catalogs
	before := pages(t, db)
	exec(`ALTER TABLE daybook.jobs DROP CONSTRAINT sound`) // it takes most of the time of writing so many rows
	exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at, ready_at) SELECT 'o', 'email', '{}', 'completed', now(), now() FROM generate_series(1, 200000)`)
	for _, prepare := range []string{`SELECT`, `VACUUM ANALYZE daybook.jobs`} {
		exec(prepare)
		pages(t, db)
		assert.LessOrEqual(t, pages(t, db), before+20, prepare)
	}
}

// TestEstimates counts up to a bound, and says by the statistics what there is beyond it.
func TestEstimates(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO daybook.organizations (id, paused_at) VALUES ('paused', now())`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (org_id, type, payload, ready_at)
SELECT 'paused', CASE WHEN n % 4 = 0 THEN 'sms' ELSE 'email' END, '{}'::jsonb, now() - make_interval(secs => n) FROM generate_series(100, 20099) AS n
UNION ALL
SELECT 'o', 'email', '{}', now() - interval '1 minute' FROM generate_series(1, 10)`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `ANALYZE daybook.jobs`)
	require.NoError(t, err)
	k, err := figures.Count(t.Context(), db.Pool, "jobs")
	require.NoError(t, err)
	assert.Equal(t, []string{figures.Due}, k.Estimated)
	assert.InEpsilon(t, 20010, k.Due, 0.05)
	assert.InEpsilon(t, 5000, k.Types[1].Due, 0.1)
	assert.WithinDuration(t, time.Now().Add(-time.Minute), *k.OldestDueAt, 30*time.Second,
		"the first that is not paused, behind all that were counted")

	_, err = db.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET ready_at = now() + interval '1 day' WHERE ready_at > now() - interval '10050 seconds' AND org_id = 'paused'`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(),
		`INSERT INTO daybook.jobs (org_id, type, payload, ready_at) SELECT 'o', 'email', '{}', now() + interval '1 day' FROM generate_series(1, 5000)`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(),
		`INSERT INTO daybook.jobs (org_id, type, payload, ready_at) SELECT 'o', 'email', '{}', now() - interval '1 day' FROM generate_series(1, 5000)`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `VACUUM ANALYZE daybook.jobs`)
	require.NoError(t, err)
	k, err = figures.Count(t.Context(), db.Pool, "jobs")
	require.NoError(t, err)
	assert.Equal(t, []string{figures.Due, figures.Waiting}, k.Estimated)
	assert.InEpsilon(t, 15000, k.Due, 0.3)
	assert.InEpsilon(t, 15000, k.Waiting, 0.3)

	all, err := figures.EstimateAll(t.Context(), db.Pool, "jobs")
	require.NoError(t, err)
	assert.InEpsilon(t, 30010, all.Due, 0.05)
}

// TestOldestSnapshot names the transaction that keeps dead rows.
func TestOldestSnapshot(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	old, err := db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { require.NoError(t, old.Rollback(t.Context())) }()
	var pid string
	require.NoError(t, old.QueryRow(t.Context(), `SELECT pg_backend_pid()::text FROM daybook.defaults`).Scan(&pid))
	_, err = db.Pool.Exec(t.Context(), `INSERT INTO daybook.organizations (id) VALUES ('o')`)
	require.NoError(t, err)
	s, err := figures.OldestSnapshot(t.Context(), db.Pool, nil)
	require.NoError(t, err)
	require.NotNil(t, s)
	assert.Contains(t, s.Holder, "session "+pid)
	assert.WithinDuration(t, time.Now(), s.Since, 30*time.Second)
	tables, err := figures.ReadTables(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Len(t, tables, 5)
}
