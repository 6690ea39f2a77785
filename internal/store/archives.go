package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models/locks"
)

// ArchivedRow is what an archive keeps as one line: a job with its rows in other tables, or an
// attempt.
type ArchivedRow struct {
	ID    string
	OrgID string
	// EndedAt is when the job finished, or the attempt ended.
	EndedAt time.Time
	// Number is the attempt's id.
	Number int64
	// Line is the line, in JSON.
	Line json.RawMessage
	// Counts are the rows of the line in each of ArchivedTables.
	Counts [6]int64
}

// ArchivedTables are the tables whose rows are archived, in the order of ArchivedRow.Counts.
var ArchivedTables = [6]string{"jobs", "attempts", "links", "receipts", "deliveries", "steps"}

// Archived is a file of the archive, as it is on record.
type Archived struct {
	Key  string `json:"key"`
	Kind string `json:"kind"`
	// Counts are the rows by table.
	Counts map[string]int64 `json:"counts"`
	Lines  int              `json:"lines"`
	Bytes  int64            `json:"bytes"`
	SHA256 string           `json:"sha256"`
	// Organizations are those of its rows.
	Organizations []string   `json:"organizations"`
	FirstAt       time.Time  `json:"firstAt"`
	LastAt        time.Time  `json:"lastAt"`
	ArchivedAt    time.Time  `json:"archivedAt"`
	RestoredAt    *time.Time `json:"restoredAt,omitempty"`
	// ErasedAt: an erasure replaced the file, which is to be deleted.
	ErasedAt *time.Time `json:"erasedAt,omitempty"`
}

// LockArchive keeps files that are not on record from being deleted until the transaction ends.
// With alone it waits until no transaction archives, and keeps others from it.
func LockArchive(ctx context.Context, tx pgx.Tx, alone bool) error {
	stmt := `SELECT pg_advisory_xact_lock_shared($1)`
	if alone {
		stmt = `SELECT pg_advisory_xact_lock($1)`
	}
	_, err := tx.Exec(ctx, stmt, locks.Archive)
	return Wrap("lock the archive", err)
}

// ArchivableJobs locks jobs that were completed or cancelled, those that ended first of those
// behind the one that is given, and reads them with their rows in other tables. Jobs that another
// transaction has locked are left out.
func ArchivableJobs(ctx context.Context, tx pgx.Tx, r Retention, behind ArchivedRow) ([]ArchivedRow, error) {
	const stmt = `
WITH ended AS MATERIALIZED (
    SELECT j.*
      FROM daybook.jobs j
     WHERE j.state IN ('completed', 'cancelled') AND j.finished_at < @before AND (@org = '' OR j.org_id = @org) AND j.id <> @keep
       AND (j.finished_at, j.id) > (@time, @id)
     ORDER BY j.finished_at, j.id
     LIMIT @batch
       FOR UPDATE OF j SKIP LOCKED
)
SELECT e.id, e.org_id, e.finished_at, 0::bigint,
       jsonb_build_object('kind', 'jobs', 'org_id', e.org_id, 'jobs', jsonb_build_array(to_jsonb(e)), 'attempts', a.rows, 'links', l.rows, 'receipts', w.rows, 'deliveries', d.rows, 'steps', s.rows),
       ARRAY[1, jsonb_array_length(a.rows), jsonb_array_length(l.rows), jsonb_array_length(w.rows), jsonb_array_length(d.rows), jsonb_array_length(s.rows)]::bigint[]
  FROM ended e
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.id), '[]') AS rows FROM daybook.attempt_log x WHERE x.job_id = e.id) a
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.kind, x.id), '[]') AS rows FROM daybook.job_links x WHERE x.job_id = e.id) l
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.attempt), '[]') AS rows FROM daybook.webhook_deliveries x WHERE x.job_id = e.id) w
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.channel), '[]') AS rows FROM daybook.job_deliveries x WHERE x.job_id = e.id) d
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.name), '[]') AS rows FROM daybook.job_steps x WHERE x.job_id = e.id AND e.awaited) s
 ORDER BY e.finished_at, e.id`
	rows, err := inOrder(ctx, tx, pgx.RowToStructByPos[ArchivedRow], stmt,
		r.args(Args{"time": behind.EndedAt, "id": behind.ID}))
	return rows, Wrap("read the jobs to archive", err)
}

// ArchivableAttempts is ArchivableJobs for attempts at accounting jobs that are completed or
// cancelled, in the order of jobs.
func ArchivableAttempts(ctx context.Context, tx pgx.Tx, r Retention, behind ArchivedRow) ([]ArchivedRow, error) {
	const stmt = `
WITH ended AS MATERIALIZED (
    SELECT a.*
      FROM daybook.attempt_log a
      JOIN daybook.accounting_work_queue q ON q.id = a.job_id AND q.state IN ('completed', 'cancelled')
     WHERE a.kind = 'accounting' AND a.ended_at < @before AND (@org = '' OR a.org_id = @org) AND (a.job_id, a.id) > (@id, @n)
     ORDER BY a.job_id, a.id
     LIMIT @batch
       FOR UPDATE OF a SKIP LOCKED
)
SELECT e.job_id, e.org_id, e.ended_at, e.id,
       jsonb_build_object('kind', 'attempts', 'org_id', e.org_id, 'jobs', '[]'::jsonb, 'attempts', jsonb_build_array(to_jsonb(e)), 'links', '[]'::jsonb, 'receipts', '[]'::jsonb, 'deliveries', '[]'::jsonb, 'steps', '[]'::jsonb),
       ARRAY[0, 1, 0, 0, 0, 0]::bigint[]
  FROM ended e
 ORDER BY e.job_id, e.id`
	rows, err := inOrder(ctx, tx, pgx.RowToStructByPos[ArchivedRow], stmt,
		r.args(Args{"id": behind.ID, "n": behind.Number}))
	return rows, Wrap("read the attempts to archive", err)
}

// RemoveArchived removes rows that ArchivableJobs or ArchivableAttempts read in the same
// transaction, and puts the file that holds them on record. It fails when there are other rows than
// those that were read.
func RemoveArchived(ctx context.Context, tx pgx.Tx, file Archived, rows []ArchivedRow) error {
	ids, numbers := make([]string, len(rows)), make([]int64, len(rows))
	var want [6]int64
	for i := range rows {
		ids[i], numbers[i] = rows[i].ID, rows[i].Number
		for n, c := range rows[i].Counts {
			want[n] += c
		}
	}
	const jobs = `
WITH attempts AS (DELETE FROM daybook.attempt_log WHERE job_id = ANY (@ids) RETURNING 1),
     links AS (SELECT FROM daybook.job_links WHERE job_id = ANY (@ids)), -- they go with their jobs
     receipts AS (DELETE FROM daybook.webhook_deliveries WHERE job_id = ANY (@ids) RETURNING 1),
     deliveries AS (DELETE FROM daybook.job_deliveries WHERE job_id = ANY (@ids) RETURNING 1),
     steps AS (SELECT FROM daybook.job_steps WHERE job_id = ANY (@ids)), -- as links
     jobs AS (DELETE FROM daybook.jobs WHERE id = ANY (@ids) RETURNING 1)
SELECT ARRAY[(SELECT count(*) FROM jobs), (SELECT count(*) FROM attempts), (SELECT count(*) FROM links), (SELECT count(*) FROM receipts), (SELECT count(*) FROM deliveries), (SELECT count(*) FROM steps)]`
	const attempts = `
WITH gone AS (DELETE FROM daybook.attempt_log a USING unnest(@ids::text[], @numbers::bigint[]) AS x (job, n) WHERE a.job_id = x.job AND a.id = x.n RETURNING 1)
SELECT ARRAY[0, (SELECT count(*) FROM gone), 0, 0, 0, 0]`
	stmt := jobs
	if file.Kind == "attempts" {
		stmt = attempts
	}
	gone, err := value[[6]int64](ctx, tx, "remove what is archived", stmt, Args{"ids": ids, "numbers": numbers})
	switch {
	case err != nil:
		return err
	case gone != want:
		return fmt.Errorf("remove what is archived: %v rows of %v, and not the %v that were written: nothing is removed",
			gone, ArchivedTables, want)
	}
	return RecordArchived(ctx, tx, file)
}

// RecordArchived puts a file on record.
func RecordArchived(ctx context.Context, tx pgx.Tx, f Archived) error {
	const stmt = `
INSERT INTO daybook.archives AS a (key, kind, counts, lines, bytes, sha256, org_ids, first_at, last_at)
VALUES (@key, @kind, @counts, @lines, @bytes, decode(@digest::text, 'hex'), @orgs, @first, @last)
ON CONFLICT (key) DO NOTHING`
	_, err := tx.Exec(ctx, stmt, pgx.NamedArgs{
		"key": f.Key, "kind": f.Kind, "counts": f.Counts, "lines": f.Lines, "bytes": f.Bytes, "digest": f.SHA256,
		"orgs":  f.Organizations,
		"first": f.FirstAt, "last": f.LastAt,
	})
	return Wrap("put the file on record", err)
}

// Archives reads the files that are on record, the first one first. An organization leaves out the
// files that hold nothing of it; empty: all.
func Archives(ctx context.Context, q Querier, org string) ([]Archived, error) {
	return ArchivesAfter(ctx, q, org, ArchivePlace{}, 0)
}

// ArchivePlace is a file's place among those on record.
type ArchivePlace struct {
	At  time.Time `json:"at"`
	Key string    `json:"key"`
}

// ArchivesAfter is Archives behind a place, and limit files at most; 0: all.
func ArchivesAfter(ctx context.Context, q Querier, org string, after ArchivePlace, limit int) ([]Archived, error) {
	const stmt = `
SELECT key, kind, counts, lines, bytes, encode(sha256, 'hex'), org_ids, first_at, last_at, archived_at, restored_at, erased_at
  FROM daybook.archives
 WHERE ($1 = '' OR org_ids @> ARRAY[$1]) AND (archived_at, key) > ($2, $3)
 ORDER BY archived_at, key
 LIMIT nullif($4::integer, 0)`
	files, err := Collect(ctx, q, pgx.RowToStructByPos[Archived], stmt, org, after.At, after.Key, limit)
	return files, Wrap("read the files of the archive", err)
}

// Restored is what was brought back of a file.
type Restored struct {
	// Rows are those that were brought back, by table.
	Rows map[string]int64 `json:"rows"`
	// Present counts the jobs and attempts that were left out: they are in the database, or another
	// job has their idempotency key.
	Present int64 `json:"present"`
}

// RestoreLines brings rows of a file back as they were. A job that is there already, or whose
// idempotency key another job has by now, is left out with its rows.
func RestoreLines(ctx context.Context, tx pgx.Tx, lines []json.RawMessage) (Restored, error) {
	const stmt = `
WITH lines AS MATERIALIZED (
    SELECT line FROM jsonb_array_elements(@lines::jsonb) AS x (line)
), jobs AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.jobs', 'id', (SELECT jsonb_agg(line -> 'jobs' -> 0) FROM lines WHERE line ->> 'kind' = 'jobs')) AS r
), whole AS MATERIALIZED (
    SELECT line FROM lines WHERE line ->> 'kind' = 'attempts' OR line -> 'jobs' -> 0 ->> 'id' IN (SELECT r FROM jobs)
), attempts AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.attempt_log', 'id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'attempts') AS x)) AS r
), links AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.job_links', 'id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'links') AS x)) AS r
), receipts AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.webhook_deliveries', 'job_id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'receipts') AS x)) AS r
), deliveries AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.job_deliveries', 'job_id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'deliveries') AS x)) AS r
), steps AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.job_steps', 'job_id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'steps') AS x)) AS r
)
SELECT ARRAY[(SELECT count(*) FROM jobs), (SELECT count(*) FROM attempts), (SELECT count(*) FROM links), (SELECT count(*) FROM receipts), (SELECT count(*) FROM deliveries), (SELECT count(*) FROM steps)]`
	all, err := json.Marshal(lines)
	if err != nil {
		return Restored{}, err
	}
	rows, err := value[[6]int64](ctx, tx, "bring back what is archived", stmt, Args{"lines": string(all)})
	if err != nil {
		return Restored{}, err
	}
	r := Restored{Rows: map[string]int64{}}
	for n, name := range ArchivedTables {
		r.Rows[name] = rows[n]
	}
	return r, nil
}

// NoteRestored notes that a file was brought back.
func NoteRestored(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, `UPDATE daybook.archives SET restored_at = clock_timestamp() WHERE key = $1`, key)
	return Wrap("note what was brought back", err)
}
