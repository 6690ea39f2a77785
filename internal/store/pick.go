package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// Pick is jobs that one transaction is about to lock, work and complete, without a lease: while it
// lasts no other transaction can have them, and when it fails they are as they were. That halves
// what a job costs, but it is for jobs that are worked in milliseconds: a worker that dies leaves
// nothing but the mark of its lock on the rows (Job.Dropped). It belongs to one goroutine.
type Pick struct {
	store *Store
	limit int
	room  Room
	// may says of which types jobs may be picked.
	may    func(jobType string) bool
	shares []due.Share
	// reserved are the shares whose room is reserved until they are locked.
	reserved []due.Share
	// recent: what has just fallen due is to be found and locked in one statement.
	recent *recent
	// Outlook is of a pick that is empty.
	Outlook
	// Capped says that jobs are due which are counted towards a cap or a limit: those are to be
	// leased.
	Capped bool
	// Others says that jobs of other types are due as well: all are to be leased.
	Others bool
}

// PickTypes implements engine.Picker: it chooses where the next jobs are to be taken from, as
// LeaseFor does.
func (s *Store) PickTypes(ctx context.Context, limit int, may func(jobType string) bool, room Room) (*Pick, error) {
	p := &Pick{store: s, limit: limit, room: room, may: may}
	var err error
	s.weed(ctx)
	s.due.ReleaseHeld()
	if p.beginRecent() {
		return p, nil
	}
	if p.Outlook, err = s.scan(ctx, s.due.Idle(room), room); err != nil {
		return nil, err
	}
	p.shares = p.ask()
	if p.reserved = p.shares; p.Empty() {
		p.Outlook = s.due.AwaitHeld(p.Outlook)
	}
	return p, nil
}

// ask chooses shares that may be picked.
func (p *Pick) ask() []due.Share {
	all := p.store.due.Divide(p.limit, p.room)
	free, counted, rest := splitCounted(all, p.room)
	p.Capped = p.Capped || len(counted) > 0
	returnUnused(p.room, append(counted, rest...), nil)
	for _, sh := range free {
		if !p.may(sh.Type()) {
			p.Others = true
			returnUnused(p.room, free, nil)
			return nil
		}
	}
	return free
}

// fields are the destinations of the columns that Lock reads.
func (p *Pick) fields(j *Job) []any {
	return append(p.store.kind.fields(j), &j.UpdatedAt, &j.Dropped, &j.Place)
}

// Empty reports that there is nothing to lock, or, after Lock, that it was called in vain:
// PickTypes says more.
func (p *Pick) Empty() bool { return p.recent == nil && len(p.shares) == 0 }

// droppedColumn says whether the transaction that last locked a row did not commit (Job.Dropped);
// x.own is the running one's id.
const droppedColumn = `CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END`

// Lock locks the jobs, in the transaction of InTx that works and completes them, and returns them
// in the order of their turns. Their Attempt and StartedAt are those of the attempt that begins
// now.
//
// Where the chosen partitions have given their rows already it goes on with others, as long as
// there are some. Their bounds are those of a lease (leaseStmt).
//
// A lock leaves the id of its transaction on the row (xmax), also when its session dies: that tells
// of a worker that a job has ended while it was picked. The id has 32 bits, and counts from this
// transaction's own, which is newer; what cannot be one, because it names several transactions,
// says nothing.
func (p *Pick) Lock(ctx context.Context, tx pgx.Tx) ([]Job, error) {
	const stmt = `
SELECT j.*
  FROM unnest(@priorities::smallint[], @orgs::text[], @slots::text[], @ats::timestamptz[], @ids::text[], @quotas::integer[])
       WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, n)
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
  /* queues: LEFT JOIN daybook.queues u ON u.name = nullif(split_part(s.slot, '/', 2), '') */
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
              /* jobs */q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
              /* accounting: q.document_id, q.version_hint, q.not_ready_count, q.epoch */,
              coalesce(q.traceparent, '')/* jobs */, coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited/* accounting: */,
              q.updated_at,
              ` + droppedColumn + `,
              q.ctid
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND /* jobs */q.fleet = @fleet AND /* accounting: */q.priority = s.priority AND q.org_id = s.org_id/* jobs */ AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot/* accounting: */
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.org_id/* jobs */, daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: */, q.ready_at, q.id
        LIMIT CASE WHEN o.paused_at IS NULL AND o.max_in_flight IS NULL/* jobs */ AND o.rate IS NULL/* accounting: */
                   /* queues: AND u.paused_at IS NULL AND num_nonnulls(u.max_parallel, u.rate, u.per_process) = 0 */
                   /* accounting: AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */ THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j`
	if p.recent != nil {
		jobs, err := p.lockRecent(ctx, tx)
		returnUnused(p.room, p.reserved, jobs)
		p.reserved, p.recent = nil, nil
		return jobs, Wrap("lock due jobs", err)
	}
	p.reserved = nil
	for next := p.shares; len(next) > 0; {
		batch := &pgx.Batch{}
		queuePlan(tx, batch)
		text := p.store.kind.sql(stmt)
		if inQueues(next) {
			text = p.store.kind.sqlOfQueues(stmt)
		}
		batch.Queue(text, p.store.kind.able(shareColumns(next)))
		// The cursors move at once: the others go on behind these rows, instead of trying each of
		// them.
		jobs, err := p.store.takeShares(ctx, tx, batch, next, p.fields)
		returnUnused(p.room, next, jobs)
		if p.store.kind.blamesRow(err) {
			p.store.doubt(next)
		}
		if err != nil || len(jobs) > 0 {
			return jobs, Wrap("lock due jobs", err)
		}
		next = p.ask()
		p.shares = append(p.shares, next...)
	}
	return nil, nil
}

// Undo says that the transaction failed, or completed nothing: the jobs are due as before, and it
// is the turn of their organizations.
func (p *Pick) Undo() {
	returnUnused(p.room, p.reserved, nil)
	p.reserved = nil
	p.store.due.Undo(p.shares)
}

// LeaveAlone leaves the picked jobs of organizations that are held back as they are: they are due
// when those are tried again, which may be now. others says that other jobs were left as well: they
// are due as before, and their organizations have had their turn.
func (p *Pick) LeaveAlone(others bool) { p.store.due.LeaveAlone(p.shares, others) }

// LeasePicked implements engine.Leases. Every request for a job sets its updated_at, under the lock
// of its row: what was asked for since is not swallowed. Only a request for a unique job that finds
// it as it is leaves no trace, so no unique one is leased in another transaction. Times are
// compared for equality alone, because the clock may have been set back.
//
// The state is compared as text, and so no partial index of it is used, but the key (decision 2).
func (s *Store) LeasePicked(ctx context.Context, tx pgx.Tx, turn Turn, jobs []Job, locked bool) ([]string, error) {
	const stmt = `
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = @turn, detached = @detached, fence = @fence, worker = @worker, leased_generation = generation,
       run_count = v.attempt, attempt_started_at = v.started_at, last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = NOT v.waiting, capped = false/* jobs */, counted = false/* accounting: */
  FROM unnest(@ids::text[], @attempts::integer[], @started::timestamptz[], @updated::timestamptz[], @waiting::boolean[])
       AS v (id, attempt, started_at, updated_at, waiting)
 WHERE q.id = v.id AND q.state::text = 'pending' AND q.run_count = v.attempt - 1 AND (@locked OR q.updated_at = v.updated_at/* jobs */ AND q.unique_hash IS NULL/* accounting: */)
RETURNING q.id`
	ids, attempts := make([]string, len(jobs)), make([]int32, len(jobs))
	started, updated, waiting := make([]time.Time, len(jobs)), make([]time.Time, len(jobs)), make([]bool, len(jobs))
	for i, j := range jobs {
		ids[i], attempts[i], started[i], updated[i], waiting[i] = j.ID, int32(j.Attempt), j.StartedAt, j.UpdatedAt,
			j.Waiting
	}
	a := turn.args(Args{
		"detached": turn.Detached, "worker": turn.Worker, "ids": ids, "attempts": attempts, "started": started,
		"updated": updated,
		"waiting": waiting, "locked": locked,
	})
	leased, err := byKey(ctx, tx, pgx.RowTo[string], s.kind.sql(stmt), a)
	return leased, Wrap("lease picked jobs", err)
}
