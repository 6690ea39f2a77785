package diagnosis

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// CompletedLately counts what was completed in the last minute, of every kind together, up to about Most; org empty: of all organizations.
func CompletedLately(ctx context.Context, q store.Querier, org string) (n int64, err error) {
	const stmt = `
SELECT (SELECT count(*)
          FROM (SELECT a.ended_at, a.outcome, a.org_id FROM daybook.attempts a ORDER BY a.id DESC LIMIT $2) a
         WHERE a.outcome = 'completed' AND a.ended_at > statement_timestamp() - interval '1 minute' AND ($1 = '' OR a.org_id = $1))
     + (SELECT count(*)
          FROM (SELECT FROM queues.task_completed c WHERE $1 = '' AND c.completed_at > statement_timestamp() - interval '1 minute' LIMIT $2) c)`
	err = q.QueryRow(ctx, stmt, org, Most).Scan(&n)
	return n, store.Wrap("count what was completed lately", err)
}
