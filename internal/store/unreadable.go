package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// The columns' constraints keep every row readable. Where one was dropped, or the disk damaged a row, that row is set aside: it fails with
// models.CodeRowUnreadable, and the rows that are leased together with it go on.

// rowReader scans row after row, and goes on behind one that cannot be scanned. Scan of pgx ends the whole result there.
type rowReader struct{ plans []pgtype.ScanPlan }

// scan reads every column that can be read, and returns the error of the first one that cannot.
func (r *rowReader) scan(row pgx.CollectableRow, dest ...any) error {
	fields, values := row.FieldDescriptions(), row.RawValues()
	if len(fields) != len(dest) {
		return row.Scan(dest...) // which says so, and fails the statement: no row is to blame
	}
	if r.plans == nil {
		types := pgtype.NewMap()
		if own, ok := row.(interface{ TypeMap() *pgtype.Map }); ok {
			types = own.TypeMap()
		}
		for i, d := range dest {
			r.plans = append(r.plans, types.PlanScan(fields[i].DataTypeOID, fields[i].Format, d))
		}
	}
	var first error
	for i, d := range dest {
		if err := r.plans[i].Scan(values[i], d); err != nil && first == nil {
			first = fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
	}
	return first
}

// jobRow is a job that a statement has leased or locked, and its place in the queue.
type jobRow struct {
	key partitionKey
	at  cursor
	job Job
	// turn is which turn it has: of its partition, and then of its organization.
	turn int
}

// eachJob sends a batch whose last statement returns jobs: for each its priority, ready_at, the fields, and more columns. It calls f for each of them, with a row
// that it uses again. It returns the ids of those that cannot be read, which readable leaves out.
func (s *Store) eachJob(ctx context.Context, q batcher, batch *pgx.Batch, f func(r *jobRow), fields func(j *Job) []any, more ...any) (unreadable []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var reader rowReader
	var r jobRow
	columns := append(append([]any{&r.key.priority, &r.at.at}, fields(&r.job)...), more...)
	var received time.Time
	_, err = lastRows(ctx, q, batch, func(row pgx.CollectableRow) (struct{}, error) {
		r = jobRow{}
		if received.IsZero() {
			received = time.Now()
		}
		if reader.scan(row, columns...) != nil {
			unreadable = append(unreadable, r.job.ID)
		}
		r.key.org, r.key.slot, r.at.id = r.job.OrgID, slotOf(r.job.Type, r.job.Queue), r.job.ID
		r.job.Priority, r.job.ReadyHere = r.key.priority, readyHere(received, r.at.at, r.job.StartedAt)
		f(&r)
		return struct{}{}, nil
	})
	return unreadable, err
}

// readable returns the jobs without those whose rows could not be read, and keeps their ids for weed.
func (s *Store) readable(jobs []Job, unreadable []string) []Job {
	if len(unreadable) == 0 {
		return jobs
	}
	s.doubt(nil, unreadable...)
	return slices.DeleteFunc(jobs, func(j Job) bool { return slices.Contains(unreadable, j.ID) })
}

// doubts are rows that may have to be set aside. weed examines them when the transaction that met them has ended.
type doubts struct {
	mu sync.Mutex
	// ids are the rows that could not be read, shares what a lease that failed asked for.
	ids    []string
	shares []share
}

func (s *Store) doubt(shares []share, ids ...string) {
	s.doubts.mu.Lock()
	defer s.doubts.mu.Unlock()
	s.doubts.ids, s.doubts.shares = append(s.doubts.ids, ids...), append(s.doubts.shares, shares...)
}

func (s *Store) takeDoubts() ([]string, []share) {
	s.doubts.mu.Lock()
	defer s.doubts.mu.Unlock()
	ids, shares := s.doubts.ids, s.doubts.shares
	s.doubts.ids, s.doubts.shares = nil, nil
	return ids, shares
}

// The times that a row may have (times_are_readable).
var (
	firstReadable = time.Unix(-62135596800, 0)
	lastReadable  = time.Unix(253402300799, 0)
)

// weedTries is how often a statement is repeated after the rows that it failed for were set aside.
const weedTries = 3

// blamesRow reports whether a statement failed for what is in a row: a data exception, a constraint of the queue's own table, or
// damage.
func (k *Kind) blamesRow(err error) bool {
	pg := pgError(err)
	switch {
	case pg == nil:
		return false
	case strings.HasPrefix(pg.Code, "23"):
		return pg.SchemaName+"."+pg.TableName == k.table
	default:
		return strings.HasPrefix(pg.Code, "22") || pg.Code == "XX001"
	}
}

// weeding runs f, and again after the rows that it failed for were set aside; doubt names the rows that may be to blame.
func (s *Store) weeding(ctx context.Context, f func() error, doubt func()) error {
	err := f()
	for try := 0; try < weedTries && s.kind.blamesRow(err); try++ {
		doubt()
		s.weed(ctx)
		err = f()
	}
	return err
}

// weed sets aside those of the doubtful rows that cannot be leased and read. A row that another transaction holds locked is left to a
// later lease or reclaim, which meets it again; so are all of them when the database fails.
func (s *Store) weed(ctx context.Context) {
	ids, shares := s.takeDoubts()
	if len(ids) == 0 && len(shares) == 0 {
		return
	}
	log := s.guard.log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var w weeder
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		w = weeder{kind: s.kind, tx: tx, log: log, bad: map[string]string{}}
		if _, err := tx.Exec(ctx, planByKey); err != nil {
			return err
		}
		held, err := w.lock(ctx, ids, shares)
		if err == nil {
			err = w.probe(ctx, held)
		}
		if err != nil {
			return err
		}
		return w.setAside(ctx)
	})
	if err != nil {
		log.Warn("rows that cannot be read could not be set aside; they are tried again", "queue", s.kind.Name, "error", err)
		return
	}
	s.changed(w.failed)
	for id, why := range w.bad {
		log.Warn("a job's row cannot be read: it is set aside, and the others go on", "queue", s.kind.Name, "job", id,
			"code", models.CodeRowUnreadable, "error", why)
	}
}

// weeder looks for unreadable rows in one transaction, and holds why each is one.
type weeder struct {
	kind *Kind
	tx   pgx.Tx
	log  *slog.Logger
	bad  map[string]string
	// failed are those that were set aside.
	failed []Change
}

// lock locks the rows of the ids, and those that a lease of the shares would take, and returns their ids.
func (w *weeder) lock(ctx context.Context, ids []string, shares []share) ([]string, error) {
	const byID = `
SELECT id FROM daybook.jobs WHERE id = ANY ($1) AND state IN ('pending', 'leased') ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`
	const byShare = `
SELECT j.id
  FROM unnest(@priorities::smallint[], @orgs::text[], @slots::text[], @ats::timestamptz[], @ids::text[], @quotas::integer[])
       AS s (priority, org_id, slot, at, id, quota)
 CROSS JOIN LATERAL (
       SELECT q.id
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND /* jobs */q.fleet = @fleet AND /* accounting: */q.priority = s.priority AND q.org_id = s.org_id
          /* jobs */AND daybook.job_slot(q.type, q.queue) = s.slot/* accounting: */
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.ready_at, q.id
        LIMIT s.quota
          FOR NO KEY UPDATE SKIP LOCKED) j`
	held, err := Collect(ctx, w.tx, pgx.RowTo[string], w.kind.sql(byID), ids)
	if err != nil || len(shares) == 0 {
		return held, err
	}
	due, err := Collect(ctx, w.tx, pgx.RowTo[string], w.kind.sql(byShare), w.kind.able(shareColumns(shares)))
	held = append(held, due...)
	slices.Sort(held)
	return slices.Compact(held), err
}

// probe finds the rows that cannot be leased and notes them in bad: it tries all, and halves those that fail until one is left.
func (w *weeder) probe(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	err := w.try(ctx, ids)
	switch {
	case err == nil:
		return nil
	case !w.kind.blamesRow(err):
		return err
	case len(ids) == 1:
		w.bad[ids[0]] = "the database cannot lease this row: " + err.Error()
		return nil
	}
	if err := w.probe(ctx, ids[:len(ids)/2]); err != nil {
		return err
	}
	return w.probe(ctx, ids[len(ids)/2:])
}

// try leases and reads rows, and rolls that back. It returns the statement's error, and notes rows that cannot be read in bad.
func (w *weeder) try(ctx context.Context, ids []string) error {
	const stmt = `
UPDATE daybook.jobs q
   SET run_count = q.run_count + 1, updated_at = clock_timestamp()
 WHERE q.id = ANY ($1)
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
          /* jobs */q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          /* accounting: q.document_id, q.version_hint, q.not_ready_count, q.epoch */,
          coalesce(q.traceparent, '')/* jobs */, coalesce(q.queue, '')/* accounting: */`
	point, err := w.tx.Begin(ctx)
	if err != nil {
		return err
	}
	rows, err := point.Query(ctx, w.kind.sql(stmt), ids)
	if err == nil {
		var reader rowReader
		for rows.Next() {
			var j Job
			var m cursor
			var priority int16
			if err := reader.scan(rows, append([]any{&priority, &m.at}, w.kind.fields(&j)...)...); err != nil {
				w.bad[j.ID] = "this row cannot be read: " + err.Error()
			}
		}
		rows.Close()
		err = rows.Err()
	}
	if back := point.Rollback(ctx); back != nil && err == nil {
		err = back
	}
	return err
}

// setAside fails the bad rows. Values that the table's constraints do not allow are replaced, so that a row can be listed, and tried again.
// An attempt that a lease counted is not: it never began.
func (w *weeder) setAside(ctx context.Context) error {
	const stmt = `
UPDATE daybook.jobs q
   SET state = 'failed', last_error_code = 'ROW_UNREADABLE', last_error = @why,
       run_count = CASE WHEN q.run_count NOT BETWEEN 0 AND 999999 THEN 0
                        WHEN q.state = 'leased' THEN greatest(q.run_count - 1, 0)
                        ELSE q.run_count END,
       reclaims = 0, /* accounting: not_ready_count = 0, */
       created_at     = CASE WHEN q.created_at BETWEEN @first AND @last THEN q.created_at ELSE clock_timestamp() END,
       ready_at       = CASE WHEN q.ready_at BETWEEN @first AND @last THEN q.ready_at ELSE clock_timestamp() END,
       first_ready_at = CASE WHEN q.first_ready_at BETWEEN @first AND @last THEN q.first_ready_at ELSE clock_timestamp() END,
       last_attempted_at = CASE WHEN q.last_attempted_at BETWEEN @first AND @last THEN q.last_attempted_at END,
       finished_at = clock_timestamp(), updated_at = clock_timestamp(), cancel_requested = false, working = false,
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
 WHERE q.id = @id
RETURNING q.org_id, /* jobs */q.type, ''/* accounting: '', q.document_id */, q.run_count`
	for id, why := range w.bad {
		point, err := w.tx.Begin(ctx)
		if err != nil {
			return err
		}
		c := Change{What: events.Failed, Job: Job{ID: id}, Code: models.CodeRowUnreadable, Message: why}
		if failed := point.QueryRow(ctx, w.kind.sql(stmt), Args{"id": id, "why": clip(why), "first": firstReadable, "last": lastReadable}).
			Scan(&c.Job.OrgID, &c.Job.Type, &c.Job.DocumentID, &c.Job.Attempt); failed != nil {
			delete(w.bad, id)
			w.log.Error("a job's row can neither be read nor set aside: repair it", "queue", w.kind.Name, "job", id, "why", why, "error", failed)
			err = point.Rollback(ctx)
		} else {
			w.failed = append(w.failed, c)
			err = point.Commit(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
