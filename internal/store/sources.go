package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// DocumentOf is a document of an organization that has the source on record, if there is one among
// some of the queue's rows.
func DocumentOf(ctx context.Context, q Querier, source string) (org, id string, found bool, err error) {
	const stmt = `
SELECT q.org_id, q.document_id
  FROM (SELECT org_id, document_id FROM daybook.accounting_work_queue LIMIT 1000) q
 CROSS JOIN daybook.defaults d
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE coalesce(o.source, d.source) = $1
 LIMIT 1`
	err = q.QueryRow(ctx, stmt, source).Scan(&org, &id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", false, nil
	}
	return org, id, err == nil, Wrap("look for a document of the source", err)
}

// ReturnSourceInvalid makes documents of the sources pending again that failed because the program
// that read them was wrong, and returns how many.
func ReturnSourceInvalid(ctx context.Context, q Querier, sources []string) (int, error) {
	const stmt = `
SELECT coalesce(sum(daybook.return_failed_jobs(f.org_id, ARRAY[$2])), 0)
  FROM (SELECT DISTINCT q.org_id
          FROM daybook.accounting_work_queue q
         CROSS JOIN daybook.defaults d
          LEFT JOIN daybook.organizations o ON o.id = q.org_id
         WHERE q.state = 'failed' AND q.last_error_code = $2 AND coalesce(o.source, d.source) = ANY ($1)) f`
	return value[int](ctx, q, "return the documents of the sources", stmt, sources, string(models.CodeSourceInvalid))
}
