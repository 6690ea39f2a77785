package store

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

const (
	// foreignKept is how many partitions are kept of a type that the worker has no handler for, and foreignTypes of how many types.
	foreignKept  = 100
	foreignTypes = 1000
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
  FROM daybook.live_job_workers w
 CROSS JOIN LATERAL unnest(w.types) AS t (type)
 WHERE w.fleet = @fleet AND w.id <> 'async-operations' AND t.type = ANY (@types)`
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
	types := s.cursors.typesOfOthers()
	if len(types) == 0 {
		return false, nil
	}
	types, err := byKey(ctx, s.pool, pgx.RowTo[string], living, s.kind.able(Args{"types": types}))
	if err != nil {
		return false, Wrap("look for workers with handlers of other types", err)
	}
	shares := s.cursors.foreignShares(types)
	if len(shares) == 0 {
		return false, nil
	}
	left, err := inOrder(ctx, s.pool, pgx.RowTo[bool], due, s.kind.able(shareColumns(shares)))
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

// keepForeign notes a partition whose type the worker has no handler for. It is called with mu held.
func (r *cursors) keepForeign(s seen) {
	jobType := slotType(s.key.slot)
	kept := r.foreign[jobType]
	if kept == nil {
		if len(r.foreign) >= foreignTypes {
			return
		}
		kept = map[partitionKey]cursor{}
		r.foreign[jobType] = kept
	}
	if _, known := kept[s.key]; !known && len(kept) >= foreignKept {
		for key := range kept { // whichever comes first: none of them is known to be worth more
			delete(kept, key)
			break
		}
	}
	kept[s.key] = s.first
}

// foreignShares are the partitions that are kept of the types among these, as shares that are asked for nothing.
func (r *cursors) foreignShares(types []string) []share {
	r.mu.Lock()
	defer r.mu.Unlock()
	var shares []share
	for _, t := range types {
		for key, first := range r.foreign[t] {
			shares = append(shares, share{key: key, cursor: first})
		}
	}
	return shares
}

// typesOfOthers are the types of which partitions are kept.
func (r *cursors) typesOfOthers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.foreign))
}

// dropForeign forgets those of the partitions of which no scan has found another row since.
func (r *cursors) dropForeign(gone []share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range gone {
		jobType := slotType(s.key.slot)
		if kept := r.foreign[jobType]; kept[s.key] == s.cursor {
			if delete(kept, s.key); len(kept) == 0 {
				delete(r.foreign, jobType)
			}
		}
	}
}
