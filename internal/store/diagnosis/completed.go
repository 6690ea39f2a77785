package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// completedLately counts what each kind has completed in the last minute, reads $2 of each at most,
// and says whether there may be more.
const completedLately = `
SELECT c.kind, c.completed, c.looked = $2, c.last
  FROM (SELECT 'accounting' AS kind, count(*) AS looked, count(*) FILTER (WHERE $1 = '' OR q.org_id = $1) AS completed, max(q.finished_at) AS last
          FROM (SELECT d.org_id, d.finished_at FROM daybook.accounting_work_queue d WHERE d.state = 'completed' AND d.finished_at > statement_timestamp() - interval '1 minute' LIMIT $2) q
         UNION ALL
        SELECT 'jobs', count(*), count(*) FILTER (WHERE $1 = '' OR q.org_id = $1), max(q.finished_at)
          FROM (SELECT j.org_id, j.finished_at FROM daybook.jobs j
                 WHERE j.state IN ('completed', 'cancelled') AND j.finished_at > statement_timestamp() - interval '1 minute' AND j.completed_turn_id IS NOT NULL
                 ORDER BY j.finished_at DESC LIMIT $2) q
         UNION ALL
        SELECT 'tasks', count(*), count(*), max(q.completed_at)
          FROM (SELECT t.completed_at FROM queues.task_completed t WHERE $1 = '' AND t.completed_at > statement_timestamp() - interval '1 minute' LIMIT $2) q) c`

// Completed is what a kind has completed in the last minute.
type Completed struct {
	Kind  string
	Count int64
	// More: Most rows were read, and there may be others.
	More bool
	// Last is when the last of all organizations was completed, of those that were read; nil: none
	// was.
	Last *time.Time
}

// CompletedLately counts what was completed in the last minute, kind by kind; org empty: of all
// organizations. It reads up to Most of each kind.
func CompletedLately(ctx context.Context, q store.Querier, org string) ([]Completed, error) {
	all, err := store.Collect(ctx, q, pgx.RowToStructByPos[Completed], completedLately, org, Most)
	return all, store.Wrap("count what was completed lately", err)
}
