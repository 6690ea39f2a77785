package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// hasForeign reports whether background jobs are due of types that this worker has no handler for and that another worker of its fleet has: one that
// lives, and leases by turns as this one does.
//
// It asks about the partitions in which this worker's own scans have met such jobs, foreignKept of each type, so that it costs the same however
// many jobs and organizations there are. For each the index of due jobs is read from the row on that the scan found.
func (s *Store) hasForeign(ctx context.Context) (bool, error) {
	// What operations by SQL claim is not fetched by any worker.
	const living = `
SELECT DISTINCT t.type
  FROM daybook.job_workers w
 CROSS JOIN LATERAL unnest(w.types) AS t (type)
 WHERE w.fleet = @fleet AND w.last_seen > statement_timestamp() - make_interval(secs => @lives) AND w.id <> 'async-operations' AND t.type = ANY (@types)`
	const due = `
SELECT EXISTS (
       SELECT 1
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = @fleet AND q.priority = p.priority AND q.org_id = p.org_id AND daybook.job_slot(q.type, q.queue) = p.slot
          AND (q.ready_at, q.id) >= (p.at, p.id) AND q.ready_at <= statement_timestamp())
   AND NOT EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = p.org_id AND o.paused_at IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM daybook.queues u WHERE u.name = split_part(p.slot, '/', 2) AND u.paused_at IS NOT NULL)
  FROM unnest(@priorities::smallint[], @orgs::text[], @slots::text[], @ats::timestamptz[], @ids::text[]) WITH ORDINALITY AS p (priority, org_id, slot, at, id, n)
 ORDER BY p.n`
	types := s.cursors.foreignTypes()
	if len(types) == 0 {
		return false, nil
	}
	args := Args{"types": types, "lives": HandlerMissingAfter.Seconds()}
	types, err := byKey(ctx, s.pool, pgx.RowTo[string], living, s.kind.able(args))
	if err != nil {
		return false, Wrap("look for workers with handlers of other types", err)
	}
	shares := s.cursors.foreignShares(types)
	if len(shares) == 0 {
		return false, nil
	}
	args = shareColumns(shares)
	delete(args, "quotas")
	left, err := inOrder(ctx, s.pool, pgx.RowTo[bool], due, s.kind.able(args))
	if err != nil {
		return false, Wrap("look for jobs of other workers", err)
	}
	found := false
	var gone []share
	for i, l := range left {
		if found = found || l; !l {
			gone = append(gone, shares[i])
		}
	}
	s.cursors.dropForeign(gone)
	return found, nil
}
