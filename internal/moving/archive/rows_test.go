package archive_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
)

// finished makes n completed jobs of an organization, each with an attempt that failed and the one
// that completed it, a link and a receipt, and one that waits.
func finished(t *testing.T, pool *pgxpool.Pool, org string, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
WITH jobs AS (
    INSERT INTO daybook.jobs (id, org_id, type, payload, idempotency_key, input_hash, state, run_count, result, finished_at,
                              completed_turn_id, completed_fence, completed_by, completed_started_at, awaited)
    SELECT $1 || '-' || i, $1, 'webhook', jsonb_build_object('n', i, 'amount', 12345678901234567890.123456789), 'key-' || i, sha256('x'), 'completed', 2,
           '{"größe": "7 \" \\ "}', clock_timestamp() - interval '40 days' + i * interval '1 second', 'run/0/1', 8, 'host', '2026-01-02 03:05:05.678901+02', true
      FROM generate_series(1, $2::int) AS i
    RETURNING id, org_id
), attempts AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, turn_id, fence)
    SELECT id, org_id, 'jobs', 'webhook', 1, 'retried', 'TIMEOUT', E'a\nb', '2026-01-02 03:04:05.678901+02', 'turn', 7 FROM jobs
), links AS (
    INSERT INTO daybook.job_links (job_id, kind, id) SELECT id, 'customer', 'ada' FROM jobs
), receipts AS (
    INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms, org_id) SELECT id, 1, 'https://example.com', true, 3, org_id FROM jobs
), deliveries AS (
    INSERT INTO daybook.job_deliveries (job_id, channel, state, attempt, generation, reference) SELECT id, 'email', 'sent', 1, 0, 'm1' FROM jobs
), steps AS (
    INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, started_at) SELECT id, 'upload', 1, 1, '{"n": 1.50}', '2026-01-02 03:05:05.678901+02' FROM jobs
)
SELECT`, org, n)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO daybook.jobs (org_id, type, payload) VALUES ($1, 'webhook', '{}')`, org)
	require.NoError(t, err)
}

// whole is all that the database has of jobs, as text.
func whole(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
SELECT x FROM (SELECT j::text FROM daybook.jobs j UNION ALL SELECT a::text FROM daybook.attempts a UNION ALL SELECT l::text FROM daybook.job_links l
               UNION ALL SELECT w::text FROM daybook.webhook_deliveries w UNION ALL SELECT d::text FROM daybook.job_deliveries d UNION ALL SELECT s::text FROM daybook.job_steps s) AS all_rows (x) ORDER BY x`)
	require.NoError(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return texts
}

// moveAll moves all that is older than a month, two lines a file.
func moveAll(t *testing.T, a *archive.Archive, pool *pgxpool.Pool, kind archive.Kind) int {
	t.Helper()
	total := 0
	var last archive.Batch
	for {
		var err error
		last, err = a.Move(t.Context(), pool, kind, store.Retention{Before: time.Now().AddDate(0, 0, -30), Batch: 2}, last)
		require.NoError(t, err)
		if last.Rows == 0 {
			return total
		}
		total += last.Rows
	}
}

func restoreAll(t *testing.T, a *archive.Archive, pool *pgxpool.Pool, org string) (back, present int64) {
	t.Helper()
	files, err := store.Archives(t.Context(), pool, org)
	require.NoError(t, err)
	for _, f := range files {
		r, err := a.Restore(t.Context(), pool, f, org)
		require.NoError(t, err)
		back += r.Rows["jobs"] + r.Rows["attempts"]
		present += r.Present
	}
	return back, present
}

// What is archived is gone from the database; what is restored is as it was, also when it is
// restored twice.
func TestJobsAreArchivedAndRestored(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	finished(t, db.Pool, "org_1", 5)
	finished(t, db.Pool, "org_2", 2)
	before := whole(t, db.Pool)
	a := open(t, t.TempDir())
	assert.Equal(t, 7, moveAll(t, a, db.Pool, archive.Jobs))
	assert.Equal(t, 2, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs`), "those that wait")
	assert.Zero(t, fixture.Count(t, db.Pool,
		`SELECT (SELECT count(*) FROM daybook.attempts) + (SELECT count(*) FROM daybook.job_links) + (SELECT count(*) FROM daybook.webhook_deliveries)`))
	v, err := a.Verify(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Equal(t, archive.Verified{Files: 4, Lines: 7, Bytes: v.Bytes, Damaged: []string{}, Unrecorded: []string{}}, v)

	back, present := restoreAll(t, a, db.Pool, "org_2")
	assert.Equal(t, []int64{4, 0}, []int64{back, present}, "two jobs and their attempts")
	back, present = restoreAll(t, a, db.Pool, "")
	assert.Equal(t, []int64{10, 2}, []int64{back, present})
	assert.Equal(t, before, whole(t, db.Pool))
	back, present = restoreAll(t, a, db.Pool, "")
	assert.Equal(t, []int64{0, 7}, []int64{back, present})
	assert.Equal(t, before, whole(t, db.Pool), "twice is as once")
}

// A job whose key another one has by now stays in the archive, with its rows.
// However many files it takes to archive an organization, the jobs of others are read once.
func TestJobsOfOthersAreReadOnce(t *testing.T) {
	t.Parallel()
	const others, own = 2000, 200
	db := pgtest.New(t)
	finished(t, db.Pool, "others", others)
	finished(t, db.Pool, "own", own)
	// What this leaves dead in the index lies among the jobs of others: while other tests'
	// transactions keep PostgreSQL from knowing that it is dead, it is read as well.
	_, err := db.Pool.Exec(t.Context(),
		`ALTER TABLE daybook.jobs SET (autovacuum_enabled = off); UPDATE daybook.jobs SET finished_at = finished_at + interval '1 day' WHERE org_id = 'own'`)
	require.NoError(t, err)
	a := open(t, t.TempDir())
	pool, reads := fixture.Reads(t, db.Pool)
	before, _ := reads("daybook.jobs")
	total := 0
	for last := (archive.Batch{Rows: 1}); last.Rows > 0; total += last.Rows {
		last, err = a.Move(t.Context(), pool, archive.Jobs,
			store.Retention{OrgID: "own", Before: time.Now().AddDate(0, 0, -30), Batch: 10}, last)
		require.NoError(t, err)
	}
	assert.Equal(t, own, total)
	after, _ := reads("daybook.jobs")
	assert.Less(t, after-before, int64(5*(others+own)))
}

func TestRestoreLeavesKeysAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	finished(t, db.Pool, "org_1", 2)
	a := open(t, t.TempDir())
	moveAll(t, a, db.Pool, archive.Jobs)
	_, err := db.Pool.Exec(t.Context(),
		`SELECT daybook.enqueue_job('org_1', 'webhook', '{}', idempotency_key => 'key-1')`)
	require.NoError(t, err)
	back, present := restoreAll(t, a, db.Pool, "")
	assert.Equal(t, []int64{2, 1}, []int64{back, present})
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.job_links`))
}

func TestAttemptsAtAccountingJobsAreArchived(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
WITH job AS (INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at)
             VALUES ('org_1', 'd', 1, 'completed', clock_timestamp()) RETURNING id)
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, started_at, ended_at, turn_id, fence)
SELECT id, 'org_1', 'd', 1, n, 'completed', '2026-01-01', CASE WHEN n < 4 THEN '2026-01-01'::timestamptz ELSE clock_timestamp() END, 't', 1 FROM job, generate_series(1, 5) AS n`)
	require.NoError(t, err)
	before := whole(t, db.Pool)
	a := open(t, t.TempDir())
	assert.Equal(t, 3, moveAll(t, a, db.Pool, archive.Attempts))
	assert.Equal(t, 2, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.attempts`))
	back, _ := restoreAll(t, a, db.Pool, "")
	assert.Equal(t, int64(3), back)
	assert.Equal(t, before, whole(t, db.Pool))
}

// What completed a document stays in its job's row, which stays; when the job is asked for anew it
// is an attempt of the log, is archived, and comes back as it was.
func TestTheAttemptThatAnAccountingJobKeeps(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(stmt string) {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, run_count, completed_turn_id, completed_fence, completed_by, completed_started_at)
VALUES ('org_1', 'd', 1, 'completed', '2026-01-01 00:00:01Z', 1, 'run/0/1', 7, 'w', '2026-01-01 00:00:00Z')`)
	before := whole(t, db.Pool)
	a := open(t, t.TempDir())
	assert.Zero(t, moveAll(t, a, db.Pool, archive.Attempts))
	assert.Equal(t, before, whole(t, db.Pool))

	exec(`SELECT daybook.enqueue_accounting_job('org_1', 'd', 2)`)
	assert.Zero(t, moveAll(t, a, db.Pool, archive.Attempts), "the job is open")
	exec(`UPDATE daybook.accounting_work_queue SET state = 'completed', finished_at = clock_timestamp(), run_count = 1, completed_turn_id = 'run/0/2', completed_fence = 8,
       completed_by = 'w', completed_started_at = clock_timestamp()`)
	before = whole(t, db.Pool)
	require.Len(t, before, 2)
	assert.Equal(t, 1, moveAll(t, a, db.Pool, archive.Attempts))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.attempts WHERE version = 2`))
	back, _ := restoreAll(t, a, db.Pool, "")
	assert.Equal(t, int64(1), back)
	assert.Equal(t, before, whole(t, db.Pool))
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM daybook.attempts a JOIN daybook.attempts b ON a.id < b.id AND a.version < b.version`),
		"in their order")
}

// A commit that fails after the file was written: nothing is removed, the file counts for nothing,
// and the next try has all of it.
func TestArchiveWhoseTransactionIsLost(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	finished(t, db.Pool, "org_1", 3)
	before := whole(t, db.Pool)
	a := open(t, t.TempDir())
	_, err := db.Pool.Exec(t.Context(), `
CREATE FUNCTION public.crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
CREATE CONSTRAINT TRIGGER crash AFTER INSERT ON daybook.archives DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.crash()`)
	require.NoError(t, err)
	old := store.Retention{Before: time.Now().AddDate(0, 0, -30), Batch: 2}
	_, err = a.Move(t.Context(), db.Pool, archive.Jobs, old, archive.Batch{})
	require.ErrorContains(t, err, "no commit")
	assert.Equal(t, before, whole(t, db.Pool))
	v, err := a.Verify(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Len(t, v.Unrecorded, 2, "the file and its manifest")
	_, err = db.Pool.Exec(t.Context(), `DROP TRIGGER crash ON daybook.archives`)
	require.NoError(t, err)
	assert.Equal(t, 3, moveAll(t, a, db.Pool, archive.Jobs))
	v, err = a.Verify(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Empty(t, v.Unrecorded, "the same rows are the same file")
}

// Files that were changed or lost are found, and nothing is brought back of them.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	finished(t, db.Pool, "org_1", 4)
	dir := t.TempDir()
	a := open(t, dir)
	moveAll(t, a, db.Pool, archive.Jobs)
	files, err := store.Archives(t.Context(), db.Pool, "")
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.NoError(t, os.Remove(filepath.Join(dir, files[0].Key)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, files[1].Key), []byte("else"), 0o600))
	v, err := a.Verify(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Len(t, v.Damaged, 2)
	for _, f := range files {
		_, err := a.Restore(t.Context(), db.Pool, f, "")
		require.ErrorIs(t, err, archive.ErrDamaged)
	}
	var manifest store.Archived
	text, err := os.ReadFile(filepath.Join(dir, files[1].Key+".manifest.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &manifest))
	assert.Equal(t, files[1].SHA256, manifest.SHA256)
	assert.Equal(t, map[string]int64{"jobs": 2, "attempts": 2, "links": 2, "receipts": 2, "deliveries": 2, "steps": 2},
		manifest.Counts)
}
