package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Pick is jobs that one transaction is about to lock, work and settle, without a lease: while it lasts nobody else can have
// them, and when it fails they are as they were. That halves what a job costs, but it is for jobs that are worked in
// milliseconds, and it leaves no trace of a worker that dies.
type Pick struct {
	store  *Store
	shares []share
	// Outlook is of a pick that is empty.
	Outlook
	// Capped says that organizations have work whose jobs in flight are counted: those are to be leased.
	Capped bool
}

// Pick chooses where the next jobs are to be taken from, as Lease does.
func (s *Store) Pick(ctx context.Context, limit int) (*Pick, error) {
	p := &Pick{store: s}
	var err error
	if p.Outlook, err = s.look(ctx, s.ring.idle()); err != nil {
		return nil, err
	}
	free, capped := splitCapped(s.ring.ask(limit))
	p.shares, p.Capped = free, len(capped) > 0
	return p, nil
}

// Empty reports that there is nothing to lock.
func (p *Pick) Empty() bool { return len(p.shares) == 0 }

// Lock locks the jobs, in the transaction that works and settles them. Their Attempt and StartedAt are those of the attempt
// that begins now.
func (p *Pick) Lock(ctx context.Context, tx pgx.Tx) ([]Job, error) {
	const stmt = `
SELECT j.*
  FROM unnest($1::smallint[], $2::text[], $3::timestamptz[], $4::text[], $5::integer[])
       WITH ORDINALITY AS s (priority, org_id, at, id, quota, n)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, {picked columns}
         FROM {queue} q
        WHERE q.state = 'pending' AND q.priority = s.priority AND q.org_id = s.org_id
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.ready_at, q.id
        LIMIT CASE WHEN {workable} AND o.max_in_flight IS NULL THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j`
	batch := &pgx.Batch{}
	batch.Queue(idleLimit)
	batch.Queue(planByKey)
	batch.Queue(p.store.kind.sql(stmt), shareColumns(p.shares)...)
	// The marks move at once: the others go on behind these rows, instead of trying each of them.
	jobs, err := p.store.takeShares(ctx, tx, batch, p.shares)
	return jobs, wrap("lock due jobs", err)
}

// Undo says that the transaction failed, or left jobs alone: they are due as before.
func (p *Pick) Undo() { p.store.ring.rewind(p.shares) }
