package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Failed is a group of jobs of one type that failed, or are to be tried again, with one error code
// and cause.
type Failed struct {
	// Type is empty for accounting jobs.
	Type string
	// Code is empty for tasks, whose errors have no code.
	Code  string
	Count int64
	// Since is when the first of them failed, Last when the newest did.
	Since, Last time.Time
	// ID, OrgID and Error are those of the newest. Of an accounting job ID is the document's.
	ID, OrgID, Error string
}

// Words are in the errors of one of the causes that an error code has: of the first whose words are
// there.
type Words struct{ Code, In, Cause string }

// failedStatements group the newest failed jobs of each kind. The organization may be empty. codes,
// words and causes are codes, and words that tell their causes apart. A task that failed stays on
// record: those of the last day count.
var failedStatements = map[string]string{
	"accounting": `
WITH newest AS MATERIALIZED (
    SELECT q.id, '' AS type, q.last_error_code AS code, q.updated_at AS at,
           (SELECT w.cause
              FROM unnest(@codes::text[], @words::text[], @causes::text[]) WITH ORDINALITY AS w (code, words, cause, i)
             WHERE w.code = q.last_error_code AND position(w.words IN left(q.last_error, 500)) > 0
             ORDER BY w.i
             LIMIT 1) AS cause
      FROM daybook.accounting_work_queue q
     WHERE q.state = 'failed' AND (@org = '' OR q.org_id = @org)
     ORDER BY q.updated_at DESC
     LIMIT @most
), groups AS (
    SELECT n.type, n.code, count(*) AS n, min(n.at) AS since, max(n.at) AS last, (array_agg(n.id ORDER BY n.at DESC, n.id))[1] AS id
      FROM newest n
     GROUP BY n.type, n.code, n.cause
)
SELECT g.type, g.code, g.n, g.since, g.last, q.document_id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.accounting_work_queue q ON q.id = g.id
 ORDER BY g.n DESC, g.code`,
	"jobs": `
WITH newest AS MATERIALIZED (
    SELECT q.id, q.type, q.last_error_code AS code, q.finished_at AS at,
           (SELECT w.cause
              FROM unnest(@codes::text[], @words::text[], @causes::text[]) WITH ORDINALITY AS w (code, words, cause, i)
             WHERE w.code = q.last_error_code AND position(w.words IN left(q.last_error, 500)) > 0
             ORDER BY w.i
             LIMIT 1) AS cause
      FROM daybook.jobs q
     WHERE q.state = 'failed' AND (@org = '' OR q.org_id = @org)
     ORDER BY q.finished_at DESC
     LIMIT @most
), groups AS (
    SELECT n.type, n.code, count(*) AS n, min(n.at) AS since, max(n.at) AS last, (array_agg(n.id ORDER BY n.at DESC, n.id))[1] AS id
      FROM newest n
     GROUP BY n.type, n.code, n.cause
)
SELECT g.type, g.code, g.n, g.since, g.last, q.id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.jobs q ON q.id = g.id
 ORDER BY g.n DESC, g.type, g.code`,
	"tasks": `
WITH newest AS MATERIALIZED (
    SELECT e.error_id, e.task_id, e.created_at AS at
      FROM queues.error e
     WHERE @org = ''
     ORDER BY e.error_id DESC
     LIMIT @most
), failed AS MATERIALIZED (
    SELECT DISTINCT ON (n.task_id) n.task_id, n.error_id, n.at, t.task_type
      FROM newest n
      JOIN queues.task t USING (task_id)
      JOIN queues.task_completed c USING (task_id)
     WHERE n.at > statement_timestamp() - interval '1 day'
     ORDER BY n.task_id, n.error_id DESC
), groups AS (
    SELECT f.task_type, count(*) AS n, min(f.at) AS since, max(f.at) AS last, (array_agg(f.error_id ORDER BY f.error_id DESC))[1] AS error_id
      FROM failed f
     GROUP BY 1
)
SELECT g.task_type, '', g.n, g.since, g.last, e.task_id::text, '', left(e.error_message, 500)
  FROM groups g
  JOIN queues.error e USING (error_id)
 ORDER BY g.n DESC, g.task_type`,
}

// FailedJobs groups the Most newest failed jobs of a kind by type, code and, where a code has
// several, by cause: of one organization, or, with the empty id, of all. The largest group is the
// first.
func FailedJobs(ctx context.Context, q store.Querier, kind, org string, apart []Words) ([]Failed, error) {
	args := store.Args{"org": org, "most": Most}
	if kind != "tasks" { // their errors have no code
		var codes, words, causes []string
		for _, w := range apart {
			codes, words, causes = append(codes, w.Code), append(words, w.In), append(causes, w.Cause)
		}
		args["codes"], args["words"], args["causes"] = codes, words, causes
	}
	groups, err := store.Collect(ctx, q, readFailed, failedStatements[kind], args)
	return groups, store.Wrap("read what failed", err)
}

func readFailed(row pgx.CollectableRow) (f Failed, err error) {
	var code *string
	err = row.Scan(&f.Type, &code, &f.Count, &f.Since, &f.Last, &f.ID, &f.OrgID, &f.Error)
	f.Code = store.Value(code)
	return f, err
}

// retryingStatements group the jobs of each kind that wait for another attempt, among those that
// fall due next and those that have been due longest. $1 is the organization, or empty; $2 is Most.
// What is not ready or locked is read again uncounted, and is no retry; neither is a job that waits
// for its turn, for other jobs, or for a callback.
var retryingStatements = map[string]string{
	"accounting": `
WITH open AS MATERIALIZED (
    (SELECT q.id, '' AS type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id
       FROM daybook.accounting_work_queue q
      WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
      ORDER BY q.ready_at
      LIMIT $2)
    UNION ALL
    (SELECT q.id, '' AS type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id
       FROM daybook.accounting_work_queue q
      WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
      ORDER BY q.ready_at
      LIMIT $2)
), groups AS (
    SELECT o.type, o.code, count(*) AS n, min(o.at) AS since, max(o.at) AS last, (array_agg(o.id ORDER BY o.at DESC, o.id))[1] AS id
      FROM open o
     WHERE o.code IS NOT NULL AND o.run_count > 0 AND ($1 = '' OR o.org_id = $1)
     GROUP BY 1, 2
)
SELECT g.type, g.code, g.n, g.since, g.last, q.document_id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.accounting_work_queue q ON q.id = g.id
 ORDER BY g.n DESC, g.code`,
	"jobs": `
WITH open AS MATERIALIZED (
    (SELECT one.*
       FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
      CROSS JOIN LATERAL (
            SELECT q.id, q.type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id, q.ready_at
              FROM daybook.jobs q
             WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() AND q.ready_at < '9999-12-31 00:00:00+00'
             ORDER BY q.ready_at
             LIMIT $2) one
      ORDER BY one.ready_at
      LIMIT $2)
    UNION ALL
    (SELECT one.*
       FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1,-2}'::smallint[]) AS f (id)
      CROSS JOIN LATERAL (
            SELECT q.id, q.type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id, q.ready_at
              FROM daybook.jobs q
             WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
             ORDER BY q.ready_at
             LIMIT $2) one
      ORDER BY one.ready_at
      LIMIT $2)
), groups AS (
    SELECT o.type, o.code, count(*) AS n, min(o.at) AS since, max(o.at) AS last, (array_agg(o.id ORDER BY o.at DESC, o.id))[1] AS id
      FROM open o
     WHERE o.code IS NOT NULL AND o.run_count > 0 AND o.code <> 'AWAITING_CALLBACK' AND ($1 = '' OR o.org_id = $1)
     GROUP BY 1, 2
)
SELECT g.type, g.code, g.n, g.since, g.last, q.id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.jobs q ON q.id = g.id
 ORDER BY g.n DESC, g.type, g.code`,
	"tasks": `
WITH open AS MATERIALIZED (
    SELECT e.error_id, e.task_id, e.created_at AS at, o.task_type
      FROM (SELECT e.error_id, e.task_id, e.created_at FROM queues.error e WHERE $1 = '' ORDER BY e.error_id DESC LIMIT $2) e
      JOIN queues.open_task o USING (task_id)
), groups AS (
    SELECT o.task_type, count(DISTINCT o.task_id) AS n, min(o.at) AS since, max(o.at) AS last, (array_agg(o.error_id ORDER BY o.error_id DESC))[1] AS error_id
      FROM open o
     GROUP BY 1
)
SELECT g.task_type, '', g.n, g.since, g.last, e.task_id::text, '', left(e.error_message, 500)
  FROM groups g
  JOIN queues.error e USING (error_id)
 ORDER BY g.n DESC, g.task_type`,
}

// RetryingJobs groups the jobs of a kind that wait for another attempt: of one organization, or,
// with the empty id, of all. The largest group is the first.
func RetryingJobs(ctx context.Context, q store.Querier, kind, org string) ([]Failed, error) {
	groups, err := store.Collect(ctx, q, readFailed, retryingStatements[kind], org, Most)
	return groups, store.Wrap("read what is tried again", err)
}
