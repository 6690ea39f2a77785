package diagnosis

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// completedLately counts what each kind has completed in the last minute, reads $2 of each at most, and says whether there may be more.
const completedLately = `
SELECT coalesce(sum(c.completed), 0)::bigint, coalesce(bool_or(c.looked = $2), false)
  FROM (SELECT count(*) AS looked, count(*) FILTER (WHERE $1 = '' OR q.org_id = $1) AS completed
          FROM (SELECT d.org_id FROM daybook.accounting_work_queue d WHERE d.state = 'completed' AND d.finished_at > statement_timestamp() - interval '1 minute' LIMIT $2) q
         UNION ALL
        SELECT count(*), count(*) FILTER (WHERE $1 = '' OR q.org_id = $1)
          FROM (SELECT j.org_id FROM daybook.jobs j
                 WHERE j.state IN ('completed', 'cancelled') AND j.finished_at > statement_timestamp() - interval '1 minute' AND j.completed_turn_id IS NOT NULL
                 ORDER BY j.finished_at DESC LIMIT $2) q
         UNION ALL
        SELECT count(*), count(*)
          FROM (SELECT FROM queues.task_completed t WHERE $1 = '' AND t.completed_at > statement_timestamp() - interval '1 minute' LIMIT $2) q) c`

// CompletedLately counts what was completed in the last minute, of every kind together; org empty: of all organizations. It reads up to Most of each
// kind; more says that there may be others.
func CompletedLately(ctx context.Context, q store.Querier, org string) (n int64, more bool, err error) {
	err = q.QueryRow(ctx, completedLately, org, Most).Scan(&n, &more)
	return n, more, store.Wrap("count what was completed lately", err)
}
