package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// hasForeign reports whether background jobs are due of types that this worker has no handler for
// and that another worker of its fleet has: one that lives, and leases by turns as this one does.
//
// It asks about the partitions in which this worker's own scans have met such jobs, so many of each
// type (due.Partitions.Foreign), so that it costs the same however many jobs and organizations
// there are. For each the index of due jobs is read from the row on that the scan found.
func (s *Store) hasForeign(ctx context.Context) (bool, error) {
	// What is claimed by SQL is not fetched by any worker that waits.
	const living = `
SELECT DISTINCT n.need
  FROM daybook.live_job_workers w
 CROSS JOIN LATERAL unnest(w.types) WITH ORDINALITY AS t (type, n)
  JOIN unnest(@types::text[]) AS n (need) ON split_part(n.need, '/', 1) = t.type
 WHERE w.fleet = @fleet AND w.id <> 'async-operations' AND NOT starts_with(w.id, '/sql/')
   AND coalesce(w.versions[t.n], 0) >= coalesce(nullif(split_part(n.need, '/', 3), '')::integer, 0)`
	const left = `
SELECT EXISTS (
       SELECT 1
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = @fleet AND q.priority = p.priority AND q.org_id = p.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = p.slot
          AND (q.ready_at, q.id) >= (p.at, p.id) AND q.ready_at <= statement_timestamp())
   AND NOT EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = p.org_id AND o.paused_at IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM daybook.queues u WHERE u.name = split_part(p.slot, '/', 2) AND u.paused_at IS NOT NULL)
  FROM unnest(@priorities::smallint[], @orgs::text[], @slots::text[], @ats::timestamptz[], @ids::text[]) WITH ORDINALITY AS p (priority, org_id, slot, at, id, n)
 ORDER BY p.n`
	types := s.due.ForeignTypes()
	if len(types) == 0 {
		return false, nil
	}
	types, err := byKey(ctx, s.pool, pgx.RowTo[string], living, s.kind.able(Args{"types": types}))
	if err != nil {
		return false, Wrap("look for workers with handlers of other types", err)
	}
	shares := s.due.Foreign(types)
	if len(shares) == 0 {
		return false, nil
	}
	has, err := inOrder(ctx, s.pool, pgx.RowTo[bool], left, s.kind.able(shareColumns(shares)))
	if err != nil {
		return false, Wrap("look for jobs of other workers", err)
	}
	found := false
	var gone []due.Share
	for i, l := range has {
		if found = found || l; !l {
			gone = append(gone, shares[i])
		}
	}
	s.due.DropForeign(gone)
	return found, nil
}
