package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// QueueStatus is how a queue stands at one moment.
type QueueStatus struct {
	// Kind is the queue's: "accounting", "jobs" or "tasks".
	Kind string
	// At is the database's clock.
	At time.Time
	// Counts holds every state, also those without a job. Failed jobs are dead letters.
	Counts map[models.JobState]int64
	// Estimated names the states whose counts are estimates: those that completed and were cancelled,
	// of all organizations, where the table is large.
	Estimated []models.JobState
	// Due counts the pending jobs whose time has come.
	Due int64
	// Waiting counts the pending jobs that wait for their turn in a sequence, for other jobs, or for the
	// limit of their key: they are due when they need not any more.
	Waiting int64
	// StaleLeases counts leases that were neither completed nor renewed for StaleAfter.
	StaleLeases int64
	// OldestDue is the due job that has been due longest; nil: none is due.
	OldestDue *PendingJob
	// OldestPending is the pending job that was asked for first; nil: none is pending.
	OldestPending *PendingJob
	// FailedByCode counts the failed jobs by their last error code.
	FailedByCode map[models.ErrorCode]int64
}

// Open counts the jobs that are not finished.
func (s QueueStatus) Open() int64 { return s.Counts[models.JobPending] + s.Counts[models.JobLeased] }

// PendingJob names a job that waits.
type PendingJob struct {
	JobID string
	OrgID string
	// DocumentID is the document of an accounting job, Type the type of a job.
	DocumentID string
	Type       string
	// FirstReadyAt is when the request was first due.
	FirstReadyAt time.Time
	// ReadyAt is when the job is due next; of one that Waits, when it is to be due after that.
	ReadyAt time.Time
	// Waits says that it waits for its turn in a sequence or for other jobs.
	Waits bool
	// AgeSeconds is how long ago it was first due (OldestPending), or is due (OldestDue); 0 when that
	// lies ahead.
	AgeSeconds float64
}

// Status reads how every queue stands, in the order of Queues, for one organization or, with the
// empty id, for all. All figures are of one moment. For all it costs what is open or failed,
// however many jobs have ended; for one organization the whole table is read.
func Status(ctx context.Context, db Beginner, org string) ([]QueueStatus, error) {
	var all []QueueStatus
	err := ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		for _, q := range Queues() {
			s := QueueStatus{
				Kind: q.Name, Counts: map[models.JobState]int64{}, Estimated: []models.JobState{},
				FailedByCode: map[models.ErrorCode]int64{},
			}
			for _, state := range models.JobStates() {
				s.Counts[state] = 0
			}
			if err := tx.QueryRow(ctx, `SELECT transaction_timestamp()`).Scan(&s.At); err != nil {
				return err
			}
			if err := q.status(ctx, tx, org, &s); err != nil {
				return err
			}
			all = append(all, s)
		}
		return nil
	})
	return all, Wrap("read the queues' status", err)
}

// status implements operations.
func (k *Kind) status(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error {
	// By the indexes of what is open or failed, and a sample of 4,096 pages of the table; all of a
	// table that is smaller, and for one organization, which may have few of the jobs. The sample is
	// of the same pages each time, so that an estimate grows as the table does.
	const counts = `
SELECT 'pending', '', count(*), count(*) FILTER (WHERE ready_at <= transaction_timestamp()/* jobs */ AND fleet <> -2/* accounting: */),
       count(*) FILTER (WHERE ready_at = '9999-12-31 00:00:00+00'/* jobs */ OR fleet = -2/* accounting: */), 0
  FROM daybook.jobs WHERE num_nulls(nullif(state, 'pending')) = 1 AND ($2 = '' OR org_id = $2)
UNION ALL
SELECT 'leased', '', count(*), 0, 0, count(*) FILTER (WHERE last_attempted_at < transaction_timestamp() - make_interval(secs => $1))
  FROM daybook.jobs WHERE state = 'leased' AND ($2 = '' OR org_id = $2)
UNION ALL
SELECT 'failed', last_error_code, count(*), 0, 0, 0 FROM daybook.jobs WHERE state = 'failed' AND ($2 = '' OR org_id = $2) GROUP BY last_error_code
UNION ALL
SELECT state::text, '', (count(*) / share)::bigint, 0, 0, 0
  FROM (SELECT CASE $2 WHEN '' THEN least(1, 4096 * current_setting('block_size')::float8 / greatest(pg_relation_size('daybook.jobs'), 1)) ELSE 1 END AS share) s
 CROSS JOIN LATERAL (SELECT state FROM daybook.jobs TABLESAMPLE SYSTEM (100 * share) REPEATABLE (0) WHERE state IN ('completed', 'cancelled') AND ($2 = '' OR org_id = $2)) j
 GROUP BY state, share
UNION ALL
SELECT 'estimated', '', 0, 0, 0, 0 WHERE $2 = '' AND pg_relation_size('daybook.jobs') > 4096 * current_setting('block_size')::bigint`
	const due = `
SELECT q.id, q.org_id, q.first_ready_at, q.ready_at, extract(epoch FROM transaction_timestamp() - q.ready_at)::float8,
       /* jobs */NULL::text, q.type/* accounting: q.document_id, NULL::text */
  FROM daybook.jobs q
 WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= transaction_timestamp()/* jobs */ AND q.fleet <> -2/* accounting: */ AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.ready_at, q.id
 LIMIT 1`
	const pending = `
SELECT q.id, q.org_id, q.first_ready_at, CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.ready_at END, extract(epoch FROM transaction_timestamp() - q.first_ready_at)::float8,
       /* jobs */NULL::text, q.type/* accounting: q.document_id, NULL::text */
  FROM daybook.jobs q
 WHERE q.state = 'pending' AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.first_ready_at, q.id
 LIMIT 1`
	var state models.JobState
	var code models.ErrorCode
	var n, isDue, waiting, stale int64
	err := Each(ctx, tx, []any{&state, &code, &n, &isDue, &waiting, &stale}, func() error {
		if state == "estimated" {
			s.Estimated = []models.JobState{models.JobCompleted, models.JobCancelled}
			return nil
		}
		if s.Counts[state] += n; state == models.JobFailed {
			s.FailedByCode[code] = n
		}
		s.Due += isDue
		s.Waiting += waiting
		s.StaleLeases += stale
		return nil
	}, k.sql(counts), StaleAfter.Seconds(), org)
	if err == nil {
		s.OldestDue, err = readWaiting(ctx, tx, k.sql(due), org)
	}
	if err == nil {
		s.OldestPending, err = readWaiting(ctx, tx, k.sql(pending), org)
	}
	return err
}

// readWaiting reads the job that a statement finds; nil: it finds none.
func readWaiting(ctx context.Context, tx pgx.Tx, stmt, org string) (*PendingJob, error) {
	found, err := Collect(ctx, tx, func(row pgx.CollectableRow) (p PendingJob, err error) {
		var document, jobType *string
		err = row.Scan(&p.JobID, &p.OrgID, timeOrNever{&p.FirstReadyAt}, timeOrNever{&p.ReadyAt}, &p.AgeSeconds, &document,
			&jobType)
		if p.ReadyAt.IsZero() {
			p.ReadyAt, p.Waits = p.FirstReadyAt, true
		}
		p.DocumentID, p.Type, p.AgeSeconds = Value(document), Value(jobType), max(p.AgeSeconds, 0)
		return p, err
	}, stmt, org)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// TimeOrNil returns nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Value returns what p points at, or the zero value.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
