package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// verify fails unless every document of the database was posted exactly once: its job is completed,
// it has one live impact, and that impact's entries balance. entries is how many each live impact
// must have; 0: any number.
func verify(ctx context.Context, pool *pgxpool.Pool, documents, entries int) error {
	for _, check := range []struct {
		what  string
		query string
		args  []any
		want  int
	}{
		{"documents", `SELECT count(*) FROM daybook.documents`, nil, documents},
		{
			"jobs that are completed",
			`SELECT count(*) FROM daybook.accounting_work_queue q JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
 WHERE q.state = 'completed'`, nil, documents,
		},
		{"documents whose completed attempts are not one for each of their versions", `
SELECT count(*) FROM daybook.documents d
  LEFT JOIN (SELECT org_id, document_id, count(*) AS n FROM daybook.attempts WHERE outcome = 'completed' GROUP BY 1, 2) a
    ON a.org_id = d.org_id AND a.document_id = d.id
 WHERE coalesce(a.n, 0) NOT BETWEEN 1 AND d.accounting_ready_version`, nil, 0},
		{"documents that do not have exactly one live impact", `
SELECT count(*) FROM daybook.documents d
  LEFT JOIN (SELECT org_id, document_id, sum(CASE kind WHEN 'post' THEN 1 ELSE -1 END) AS live FROM daybook.impacts GROUP BY 1, 2) i
    ON i.org_id = d.org_id AND i.document_id = d.id
 WHERE coalesce(i.live, 0) <> 1`, nil, 0},
		{
			"impacts that do not balance, or do not have their number of entries", `
SELECT count(*) FROM daybook.impacts i
  LEFT JOIN (SELECT impact_id, count(*) AS n, sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) AS difference
               FROM daybook.entries GROUP BY 1) e ON e.impact_id = i.id
 WHERE coalesce(e.n, 0) <> i.entry_count OR coalesce(e.difference, 0) <> 0 OR ($1 > 0 AND i.entry_count <> $1)`,
			[]any{entries},
			0,
		},
	} {
		got, err := one[int](ctx, pool, check.query, check.args...)
		if err != nil {
			return fmt.Errorf("count %s: %w", check.what, err)
		}
		if got != check.want {
			return fmt.Errorf("not exactly once: %s: %d, must be %d", check.what, got, check.want)
		}
	}
	return nil
}
