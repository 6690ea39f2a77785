package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// UnknownOrganizations returns those of the ids, in their order, of which the database has nothing:
// no configuration, no document and no job of any kind.
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

// NeverHeardOf reports whether the database has nothing of an organization, nor had: besides what
// UnknownOrganizations looks for, no token, archive or erasure either, and no action that was done.
// One that was refused may have been so because there is no such organization.
func NeverHeardOf(ctx context.Context, q Querier, org string) (never bool, err error) {
	const stmt = `
SELECT NOT EXISTS (SELECT 1 FROM daybook.api_tokens x WHERE x.org_id = $1) AND NOT EXISTS (SELECT 1 FROM daybook.actions x WHERE x.org_id = $1 AND x.outcome = 'done')
   AND NOT EXISTS (SELECT 1 FROM daybook.archives x WHERE x.org_ids @> ARRAY[$1]) AND NOT EXISTS (SELECT 1 FROM daybook.erasures x WHERE x.org_id = $1)`
	if err := q.QueryRow(ctx, stmt, org).Scan(&never); err != nil || !never {
		return false, Wrap("look for the organization", err)
	}
	unknown, err := UnknownOrganizations(ctx, q, []string{org})
	return len(unknown) > 0, err
}
