package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// UnknownOrganizations returns those of the ids, in their order, of which the database has nothing: no configuration, no document
// and no job of any kind.
func UnknownOrganizations(ctx context.Context, q Querier, ids []string) ([]string, error) {
	const stmt = `
SELECT coalesce(array_agg(o ORDER BY n), '{}')
  FROM unnest($1::text[]) WITH ORDINALITY AS u (o, n)
 WHERE NOT EXISTS (SELECT 1 FROM daybook.organizations x WHERE x.id = u.o)
   AND NOT EXISTS (SELECT 1 FROM daybook.documents x WHERE x.org_id = u.o)`
	const withJobs = `SELECT o FROM unnest($1::text[]) AS u (o) WHERE EXISTS (SELECT 1 FROM daybook.jobs x WHERE x.org_id = u.o)`
	var unknown []string
	if err := q.QueryRow(ctx, stmt, ids).Scan(&unknown); err != nil {
		return nil, Wrap("look for organizations", err)
	}
	for _, queue := range OrganizationQueues() {
		if len(unknown) == 0 {
			break
		}
		known, err := Collect(ctx, q, pgx.RowTo[string], queue.sql(withJobs), unknown)
		if err != nil {
			return nil, Wrap("look for organizations", err)
		}
		unknown = slices.DeleteFunc(unknown, func(org string) bool { return slices.Contains(known, org) })
	}
	return unknown, nil
}
