package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// mostRecent is how many jobs a recent pick takes at most.
const mostRecent = 64

// recent is what a recent pick knows, which finds and locks in one statement what has just fallen
// due: see due.Partitions.RecentPick for when, and for what it buys.
type recent struct {
	slots []string
	since time.Duration
	most  int
	began time.Time
}

// beginRecent reserves room for a recent pick, if this pick can be one.
func (p *Pick) beginRecent() bool {
	r := recent{most: min(p.limit, mostRecent), began: time.Now()}
	if r.slots, r.since = p.store.due.RecentPick(r.began, p.room); len(r.slots) == 0 {
		return false
	}
	for _, slot := range r.slots {
		share := due.Share{Place: due.Place{Key: due.Key{Slot: slot}}}
		// A scan finds jobs that the worker may not work, too: those of a later version.
		if !p.may(share.Type()) || !p.room.Handles(share.Type(), share.MinVersion()) || p.room.Everywhere(share.Type()) > 0 {
			r.most = 0
			break
		}
		share.Quota = p.room.Reserve(share.Type(), r.most)
		p.reserved = append(p.reserved, share)
		r.most = min(r.most, share.Quota)
	}
	if r.most == 0 {
		returnUnused(p.room, p.reserved, nil)
		p.reserved = nil
		return false
	}
	p.recent = &r
	return true
}

// recentPickStmt locks the jobs of @slots that have fallen due within @since seconds, unless there
// are more than @most jobs: then none. Each row says how many others there are that it leaves
// alone, which are to be leased.
//
// The state is compared as text, and so no partial index of it is used: a plan that was made while
// few jobs were pending would read all of them.
const recentPickStmt = `
SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
       q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at, coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited, q.updated_at,
       ` + droppedColumn + `,
       q.ctid, d.others
  FROM (SELECT array_agg(r.id) FILTER (WHERE r.fits) AS ids, count(*) FILTER (WHERE NOT r.fits) AS others, count(*) AS total
          FROM (SELECT i.id, CASE WHEN o.paused_at IS NOT NULL THEN NULL
                                    WHEN i.queue IS NULL THEN daybook.job_slot(i.type, NULL, i.min_version) = ANY (@slots::text[]) AND num_nonnulls(o.max_in_flight, o.rate) = 0
                                    WHEN daybook.queue_uncounted(i.queue) IS NOT NULL
                                    THEN daybook.queue_uncounted(i.queue) AND daybook.job_slot(i.type, i.queue, i.min_version) = ANY (@slots) AND num_nonnulls(o.max_in_flight, o.rate) = 0 END AS fits
                  FROM (SELECT j.id, j.org_id, j.type, j.queue, j.min_version
                          FROM daybook.jobs j
                         WHERE j.fleet = @fleet AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at > statement_timestamp() - make_interval(secs => @since)
                           AND j.ready_at <= statement_timestamp()
                         LIMIT @most + 1) i
                  LEFT JOIN daybook.organizations o ON o.id = i.org_id) r) d
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  JOIN daybook.jobs q ON q.id = ANY (d.ids)
 WHERE d.total <= @most AND q.state::text = 'pending' AND q.fleet = @fleet AND q.ready_at <= statement_timestamp()
   FOR NO KEY UPDATE OF q SKIP LOCKED`

// lockRecent locks what has just fallen due, if that is all that is due.
func (p *Pick) lockRecent(ctx context.Context, tx pgx.Tx) ([]Job, error) {
	s, r := p.store, p.recent
	batch := &pgx.Batch{}
	queuePlan(tx, batch)
	batch.Queue(recentPickStmt,
		Args{"slots": r.slots, "fleet": s.kind.fleetID(), "since": r.since.Seconds(), "most": r.most})
	var rows []Job
	var places []due.Place
	var others int
	unreadable, err := s.eachJob(ctx, tx, batch, func(r *jobRow) {
		rows, places = append(rows, r.job), append(places, r.Place)
	}, p.fields, &others)
	if err != nil {
		s.due.EndRecentPick(r.began, nil, true)
		return nil, err
	}
	p.shares = s.due.EndRecentPick(r.began, places, others > 0)
	jobs := make([]Job, len(rows))
	for i, row := range due.InTurn(places) {
		jobs[i] = rows[row]
	}
	return s.readable(jobs, unreadable), nil
}
