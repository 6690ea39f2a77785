package diagnosis

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// completedLately counts what each kind completed in the last minute: documents by the log of attempts, jobs by their rows, which keep the attempt.
const completedLately = `
SELECT (SELECT count(*)
          FROM (SELECT a.org_id FROM daybook.attempt_log a WHERE a.ended_at > statement_timestamp() - interval '1 minute' AND a.outcome = 'completed' LIMIT $2) a
         WHERE $1 = '' OR a.org_id = $1)
     + (SELECT count(*)
          FROM (SELECT j.org_id FROM daybook.jobs j
                 WHERE j.state IN ('completed', 'cancelled') AND j.finished_at > statement_timestamp() - interval '1 minute' AND j.completed_turn_id IS NOT NULL LIMIT $2) j
         WHERE $1 = '' OR j.org_id = $1)
     + (SELECT count(*)
          FROM (SELECT FROM queues.task_completed c WHERE $1 = '' AND c.completed_at > statement_timestamp() - interval '1 minute' LIMIT $2) c)`

// CompletedLately counts what was completed in the last minute, of every kind together, up to about Most of each; org empty: of all organizations.
func CompletedLately(ctx context.Context, q store.Querier, org string) (n int64, err error) {
	err = q.QueryRow(ctx, completedLately, org, Most).Scan(&n)
	return n, store.Wrap("count what was completed lately", err)
}
