package store

import "context"

// UnknownOrganizations returns those of the ids, in their order, of which the database has nothing: no configuration, no document
// and no job.
func UnknownOrganizations(ctx context.Context, q Querier, ids []string) ([]string, error) {
	const stmt = `
SELECT coalesce(array_agg(o ORDER BY n), '{}')
  FROM unnest($1::text[]) WITH ORDINALITY AS u (o, n)
 WHERE NOT EXISTS (SELECT 1 FROM daybook.organizations x WHERE x.id = u.o)
   AND NOT EXISTS (SELECT 1 FROM daybook.documents x WHERE x.org_id = u.o)
   AND NOT EXISTS (SELECT 1 FROM daybook.accounting_work_queue x WHERE x.org_id = u.o)
   AND NOT EXISTS (SELECT 1 FROM daybook.jobs x WHERE x.org_id = u.o)`
	var unknown []string
	err := q.QueryRow(ctx, stmt, ids).Scan(&unknown)
	return unknown, wrap("look for organizations", err)
}
