package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// The table's constraint (sound) refuses rows that cannot be read or leased, except for one that
// has had a million attempts. Others are there only where the constraint was dropped, or the disk
// damaged a row. Such a row is set aside: it fails with models.CodeRowUnreadable, and the rows that
// are leased together with it go on.

// readable returns the jobs without those whose rows could not be read, and keeps their ids for
// weed.
func (s *Store) readable(jobs []Job, unreadable []string) []Job {
	if len(unreadable) == 0 {
		return jobs
	}
	s.doubt(nil, unreadable...)
	return slices.DeleteFunc(jobs, func(j Job) bool { return slices.Contains(unreadable, j.ID) })
}

// doubts are rows that may have to be set aside. weed examines them when the transaction that met
// them has ended.
type doubts struct {
	mu sync.Mutex
	// ids are the rows that could not be read, shares what a lease that failed asked for.
	ids    []string
	shares []due.Share
}

func (s *Store) doubt(shares []due.Share, ids ...string) {
	s.doubts.mu.Lock()
	defer s.doubts.mu.Unlock()
	s.doubts.ids, s.doubts.shares = append(s.doubts.ids, ids...), append(s.doubts.shares, shares...)
}

func (s *Store) takeDoubts() ([]string, []due.Share) {
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

// blamesRow reports whether a statement failed for what is in a row: a data exception, a constraint
// of the queue's own table, or damage.
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

// weeding runs f, and again after the rows that it failed for were set aside; doubt names the rows
// that may be to blame.
func (s *Store) weeding(ctx context.Context, f func() error, doubt func()) error {
	err := f()
	for try := 0; try < weedTries && s.kind.blamesRow(err); try++ {
		doubt()
		s.weed(ctx)
		err = f()
	}
	return err
}

// weed sets aside those of the doubtful rows that cannot be leased and read. A row that another
// transaction holds locked is left to a later lease or reclaim, which meets it again; so are all of
// them when the database fails.
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
	var failed []Change
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		failed = nil
		if _, err := tx.Exec(ctx, planByKey); err != nil {
			return err
		}
		ids, err := s.lockDoubtful(ctx, tx, ids, shares)
		if err != nil {
			return err
		}
		for _, id := range ids {
			why, err := s.whyUnreadable(ctx, tx, id)
			if err != nil {
				return err
			}
			if why == "" {
				continue
			}
			c, err := s.setAside(ctx, tx, id, why)
			if err != nil {
				log.Error("a job's row can neither be read nor set aside: repair it",
					"queue", s.kind.Name, "job", id, "why", why, "error", err)
				continue
			}
			failed = append(failed, c)
		}
		return nil
	})
	if err != nil {
		log.Warn("rows that cannot be read could not be set aside; they are tried again", "queue", s.kind.Name, "error",
			err)
		return
	}
	s.changed(failed)
	for _, c := range failed {
		log.Warn("a job's row cannot be read: it is set aside, and the others go on", "queue", s.kind.Name, "job", c.Job.ID,
			"code", models.CodeRowUnreadable, "error", c.Message)
	}
}

// lockDoubtful locks the rows of the ids, and those that a lease of the shares would take, and
// returns their ids.
func (s *Store) lockDoubtful(ctx context.Context, tx pgx.Tx, ids []string, shares []due.Share) ([]string, error) {
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
          /* jobs */AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot/* accounting: */
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.ready_at, q.id
        LIMIT s.quota
          FOR NO KEY UPDATE SKIP LOCKED) j`
	held, err := Collect(ctx, tx, pgx.RowTo[string], s.kind.sql(byID), ids)
	if err != nil || len(shares) == 0 {
		return held, err
	}
	more, err := Collect(ctx, tx, pgx.RowTo[string], s.kind.sql(byShare), s.kind.able(shareColumns(shares)))
	held = append(held, more...)
	slices.Sort(held)
	return slices.Compact(held), err
}

// whyUnreadable leases and reads a row, and takes that back. It returns why that cannot be done, ""
// if it can.
func (s *Store) whyUnreadable(ctx context.Context, tx pgx.Tx, id string) (why string, err error) {
	const stmt = `
UPDATE daybook.jobs q
   SET run_count = q.run_count + 1, updated_at = clock_timestamp()
 WHERE q.id = $1
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
          /* jobs */q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          /* accounting: q.document_id, q.version_hint, q.not_ready_count, q.epoch */,
          coalesce(q.traceparent, '')/* jobs */, coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited/* accounting: */`
	point, err := tx.Begin(ctx)
	if err != nil {
		return "", err
	}
	var r jobRow
	columns := append([]any{&r.Priority, &r.At}, s.kind.fields(&r.job)...)
	err = point.QueryRow(ctx, s.kind.sql(stmt), id).Scan(columns...)
	_, unread := errors.AsType[pgx.ScanArgError](err)
	switch {
	case unread:
		why, err = "this row cannot be read: "+err.Error(), nil
	case s.kind.blamesRow(err):
		why, err = "the database cannot lease this row: "+err.Error(), nil
	}
	return why, cmp.Or(point.Rollback(ctx), err)
}

// setAside fails a bad row. Values that the table's constraints do not allow are replaced, so that
// a row can be listed, and tried again. An attempt that a lease counted is not: it never began.
func (s *Store) setAside(ctx context.Context, tx pgx.Tx, id, why string) (Change, error) {
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
	c := Change{What: events.Failed, Job: Job{ID: id}, Code: models.CodeRowUnreadable, Message: why}
	err := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) error {
		return point.QueryRow(ctx, s.kind.sql(stmt),
			Args{"id": id, "why": clip(why), "first": firstReadable, "last": lastReadable}).
			Scan(&c.Job.OrgID, &c.Job.Type, &c.Job.DocumentID, &c.Job.Attempt)
	})
	return c, err
}
