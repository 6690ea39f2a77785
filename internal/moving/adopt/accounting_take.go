package adopt

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// legacyJob is a row of a legacy accounting queue.
type legacyJob struct {
	id, org, document string
	version           int64
	state             string
	readyAt           time.Time
	runs              int
	lastAttempted     *time.Time
	lastError         *string
	createdAt         time.Time
	updatedAt         time.Time
	hash              int64
	row               string

	// elsewhere is what the legacy system has posted of the document; nil: nothing.
	elsewhere *elsewhere
	// jobID and generation are those of Daybook's row; inserted says that the adoption wrote it.
	jobID      string
	generation int64
	inserted   bool
}

// heldMark is what the legacy row of an open or failed job says from then on.
const heldMark = "held by Daybook"

// maxRuns is how many attempts a row of Daybook's queue may count.
const maxRuns = 1000000

// open says that the job is still to be worked.
func (j *legacyJob) open() bool { return j.state == "pending" || j.state == "leased" }

// Take implements Adopter.
func (a *Accounting) Take(ctx context.Context, after string) (Step, error) {
	var s Step
	err := store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
		s = Step{}
		if err := Lock(ctx, tx, a.table.Name); err != nil {
			return err
		}
		jobs, err := a.lockRows(ctx, tx, after)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			return a.left(ctx, tx, &s)
		}
		if err := a.findElsewhere(ctx, tx, jobs, &s.Problems); err != nil {
			return err
		}
		if err := a.write(ctx, tx, jobs, &s.Problems); err != nil {
			return err
		}
		for i := range jobs {
			s.Done.Add(jobs[i].org, jobs[i].state, jobs[i].hash)
		}
		s.Next = jobs[len(jobs)-1].id
		return nil
	})
	return s, store.Wrap("adopt rows of "+a.table.Name, err)
}

// left counts what the legacy queue still holds, at the end of a pass.
func (a *Accounting) left(ctx context.Context, tx pgx.Tx, s *Step) error {
	var p Plan
	if err := a.count(ctx, tx, &p); err != nil {
		return err
	}
	s.Left = p.Found
	s.Problems.Merge(p.Problems)
	return nil
}

// lockRows locks the next rows that can be adopted and that no other transaction holds.
func (a *Accounting) lockRows(ctx context.Context, tx pgx.Tx, after string) ([]legacyJob, error) {
	behind := ""
	if after != "" {
		behind = "AND l.id > $4::text::" + a.id
	}
	stmt := `
SELECT l.id::text, l.org_id::text, l.document_id::text, l.version_hint::text::bigint, l.state::text, ` +
		a.table.Time("l", "ready_at", "clock_timestamp()") + `, ` +
		`least(greatest(coalesce(` + a.table.Text("l", "run_count", "'0'") + `::bigint, 0), 0), ` + fmt.Sprint(maxRuns) +
		`), ` +
		a.table.Time("l", "last_attempted_at", "NULL::timestamptz") + `, ` + a.table.Text("l", "last_error", "NULL::text") +
		`, coalesce(` +
		a.table.Time("l", "created_at", "NULL::timestamptz") + `, clock_timestamp()), coalesce(` +
		a.table.Time("l", "updated_at", "NULL::timestamptz") + `, clock_timestamp()), ` +
		hash("l.org_id", "l.document_id", "l.version_hint") + `, to_jsonb(l)::text
  FROM ` + a.table.Name + ` l
 WHERE NOT EXISTS (SELECT FROM daybook.adopted_rows held WHERE held.legacy_table = $1 AND held.legacy_id = l.id::text)
   AND NOT ` + a.inWork() + ` AND ` + a.misfit() + ` IS NULL
   AND (cardinality($2::text[]) = 0 OR l.org_id::text = ANY ($2)) ` + behind + `
 ORDER BY l.id
 LIMIT $3
   FOR NO KEY UPDATE OF l SKIP LOCKED`
	args := []any{a.table.Name, a.orgs(), BatchRows}
	if after != "" {
		args = append(args, after)
	}
	var jobs []legacyJob
	var j legacyJob
	err := store.Each(ctx, tx, []any{
		&j.id, &j.org, &j.document, &j.version, &j.state, &j.readyAt, &j.runs, &j.lastAttempted, &j.lastError,
		&j.createdAt, &j.updatedAt, &j.hash, &j.row,
	}, func() error {
		jobs = append(jobs, j)
		return nil
	}, stmt, args...)
	return jobs, store.Wrap("lock legacy rows", err)
}

// write gives the rows to Daybook and marks them, in one transaction.
func (a *Accounting) write(ctx context.Context, tx pgx.Tx, jobs []legacyJob, problems *Problems) error {
	if err := insertJobs(ctx, tx, jobs); err != nil {
		return err
	}
	if err := mergeJobs(ctx, tx, jobs, problems); err != nil {
		return err
	}
	if err := insertAttempts(ctx, tx, jobs); err != nil {
		return err
	}
	if err := recordElsewhere(ctx, tx, a.table.Name, jobs); err != nil {
		return err
	}
	if err := postDifferences(ctx, tx, jobs, problems); err != nil {
		return err
	}
	rows := make([]Row, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		rows[i] = Row{
			LegacyID: j.id, Kind: string(models.KindAccounting), OrgID: j.org, DocumentID: &j.document, JobID: j.jobID,
			Version: &j.version,
			State:   j.state, Generation: j.generation, Legacy: j.row,
		}
	}
	if err := Record(ctx, tx, a.table.Name, rows); err != nil {
		return err
	}
	return a.mark(ctx, tx, jobs)
}

// insertJobs writes a row of Daybook's queue for each document that has none.
func insertJobs(ctx context.Context, tx pgx.Tx, jobs []legacyJob) error {
	const stmt = `
INSERT INTO daybook.accounting_work_queue AS q (org_id, document_id, version_hint, state, ready_at, first_ready_at, run_count, last_attempted_at,
                                                last_error, last_error_code, finished_at, created_at, updated_at)
SELECT k.org, k.document, k.version, k.state::daybook.job_state, d.due, d.due, k.runs, k.attempted,
       CASE WHEN k.state = 'failed' THEN coalesce(k.error, 'the legacy queue has no error on record') ELSE k.error END,
       CASE WHEN k.state = 'failed' OR k.error IS NOT NULL THEN 'FAILED_ELSEWHERE' END,
       CASE WHEN k.state <> 'pending' THEN k.updated END, k.created, CASE WHEN k.state <> 'pending' THEN k.updated ELSE clock_timestamp() END
  FROM unnest(@orgs::text[], @documents::text[], @versions::bigint[], @states::text[], @ready::timestamptz[], @runs::integer[], @attempted::timestamptz[],
              @errors::text[], @created::timestamptz[], @updated::timestamptz[]) AS k (org, document, version, state, ready, runs, attempted, error, created, updated)
 CROSS JOIN LATERAL (SELECT CASE WHEN k.state = 'pending' THEN greatest(k.ready, clock_timestamp()) ELSE k.ready END AS due) d
 ORDER BY k.ready, k.org, k.document
ON CONFLICT (org_id, document_id) DO NOTHING
RETURNING q.org_id, q.document_id, q.id`
	n := len(jobs)
	orgs, documents, states, errs := make([]string, n), make([]string, n), make([]string, n), make([]*string, n)
	versions, runs := make([]int64, n), make([]int, n)
	ready, created, updated, attempted := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n),
		make([]*time.Time, n)
	at := make(map[[2]string]*legacyJob, n)
	for i := range jobs {
		j := &jobs[i]
		orgs[i], documents[i], states[i], errs[i] = j.org, j.document, j.state, j.lastError
		if j.open() {
			states[i] = "pending"
		}
		versions[i], runs[i] = j.version, j.runs
		ready[i], created[i], updated[i], attempted[i] = j.readyAt, j.createdAt, j.updatedAt, j.lastAttempted
		at[[2]string{j.org, j.document}] = j
	}
	var org, document, id string
	err := store.Each(ctx, tx, []any{&org, &document, &id}, func() error {
		j := at[[2]string{org, document}]
		j.jobID, j.inserted = id, true
		return nil
	}, stmt, store.Args{
		"orgs": orgs, "documents": documents, "versions": versions, "states": states, "ready": ready, "runs": runs,
		"attempted": attempted,
		"errors":    errs, "created": created, "updated": updated,
	})
	if err != nil {
		return store.Wrap("write accounting jobs", err)
	}
	_, err = tx.Exec(ctx, `SELECT daybook.wake_accounting_queue()`)
	return store.Wrap("wake the workers", err)
}

// mergeJobs asks for the documents that have a row in Daybook's queue already, in the order of
// their keys. The greater version counts.
func mergeJobs(ctx context.Context, tx pgx.Tx, jobs []legacyJob, problems *Problems) error {
	const ask = `SELECT e.job_id, e.result FROM daybook.enqueue_accounting_job($1, $2, $3, $4) e`
	const read = `SELECT id, generation FROM daybook.accounting_work_queue WHERE org_id = $1 AND document_id = $2 FOR NO KEY UPDATE`
	for _, i := range byKey(jobs) {
		j := &jobs[i]
		if j.inserted {
			continue
		}
		if j.open() {
			var result string
			if err := tx.QueryRow(ctx, ask, j.org, j.document, j.version, j.readyAt).Scan(&j.jobID, &result); err != nil {
				return store.Wrap("enqueue", err)
			}
		}
		if err := tx.QueryRow(ctx, read, j.org, j.document).Scan(&j.jobID, &j.generation); err != nil {
			return store.Wrap("read the job", err)
		}
		problems.Add("ENQUEUED_BEFORE",
			"the document had a job in Daybook before its row was adopted: the greater version counts", j.org+"/"+j.id)
	}
	return nil
}

// insertAttempts puts the attempts of the legacy worker into the log, one row for all of a job's.
func insertAttempts(ctx context.Context, tx pgx.Tx, jobs []legacyJob) error {
	const stmt = `
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, error, started_at, ended_at, worker, turn_id, fence,
                                 times, first_started_at)
SELECT k.job, k.org, k.document, k.version, k.runs, k.outcome::daybook.attempt_outcome,
       CASE WHEN k.outcome IN ('failed', 'retried') THEN 'FAILED_ELSEWHERE' END, k.error, k.started, greatest(k.ended, k.started), 'legacy worker', 'adopted', 0,
       k.times, CASE WHEN k.times > 1 THEN least(k.created, k.started) END
  FROM unnest(@jobs::text[], @orgs::text[], @documents::text[], @versions::bigint[], @runs::integer[], @outcomes::text[], @errors::text[],
              @started::timestamptz[], @ended::timestamptz[], @created::timestamptz[], @times::integer[])
       AS k (job, org, document, version, runs, outcome, error, started, ended, created, times)`
	outcome := map[string]models.Outcome{
		"pending": models.OutcomeRetried, "leased": models.OutcomeLost, "failed": models.OutcomeFailed,
		"completed": models.OutcomeCompleted, "cancelled": models.OutcomeCancelled,
	}
	var ids, orgs, documents, outcomes []string
	var errs []*string
	var versions []int64
	var runs, times []int
	var started, ended, created []time.Time
	for i := range jobs {
		j := &jobs[i]
		if !j.inserted || j.runs == 0 {
			continue
		}
		ids, orgs, documents, errs = append(ids, j.jobID), append(orgs, j.org), append(documents, j.document),
			append(errs, j.lastError)
		versions, runs, created = append(versions, j.version), append(runs, j.runs), append(created, j.createdAt)
		outcomes = append(outcomes, string(outcome[j.state]))
		began := j.updatedAt
		if j.lastAttempted != nil {
			began = *j.lastAttempted
		}
		started, ended = append(started, began), append(ended, j.updatedAt)
		// Only the last attempt of a completed job completed it.
		n := j.runs
		if j.state == "completed" {
			n = 1
		}
		times = append(times, n)
	}
	_, err := tx.Exec(ctx, stmt, store.Args{
		"jobs": ids, "orgs": orgs, "documents": documents, "versions": versions, "runs": runs, "outcomes": outcomes,
		"errors":  errs,
		"started": started, "ended": ended, "created": created, "times": times,
	})
	return store.Wrap("log the attempts", err)
}

// mark has the legacy worker leave the rows alone. Also rows that it leaves alone anyway are
// written, so that a transaction that began before, under a stricter isolation level, does not
// change them unnoticed.
func (a *Accounting) mark(ctx context.Context, tx pgx.Tx, jobs []legacyJob) error {
	note := ""
	if a.table.Has("last_error") {
		note = ", last_error = '" + heldMark + "'"
	}
	var open, ended []string
	for i := range jobs {
		if jobs[i].open() || jobs[i].state == "failed" {
			open = append(open, jobs[i].id)
		} else {
			ended = append(ended, jobs[i].id)
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE `+a.table.Name+` SET state = 'cancelled'`+note+` WHERE id = ANY ($1::text[]::`+a.id+
		`[])`, open); err != nil {
		return store.Wrap("mark legacy rows", err)
	}
	_, err := tx.Exec(ctx, `UPDATE `+a.table.Name+` SET state = state WHERE id = ANY ($1::text[]::`+a.id+`[])`, ended)
	return store.Wrap("mark legacy rows", err)
}
