package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Holder is the job that has been at work longest of those that fill a cap or a limit.
type Holder struct {
	// ID is the job's; of an accounting job it is the document's, whose organization is OrgID.
	ID, OrgID, Type string
	// Worker is who works it, Since when it began.
	Worker string
	Since  time.Time
}

// holderStatements find, of each kind, the job that has been at work longest: $1 is the
// organization or empty, $2 the named queue or empty, $3 the type of task or empty.
var holderStatements = map[string]string{
	"accounting": `
SELECT q.document_id, q.org_id, '', coalesce(q.worker, ''), coalesce(q.attempt_started_at, q.last_attempted_at)
  FROM daybook.accounting_work_queue q
 WHERE q.state = 'leased' AND ($1 = '' OR q.org_id = $1) AND $2 = '' AND $3 = ''
 ORDER BY 5, 1
 LIMIT 1`,
	"jobs": `
SELECT q.id, q.org_id, q.type, coalesce(q.worker, ''), coalesce(q.attempt_started_at, q.last_attempted_at)
  FROM daybook.jobs q
 WHERE q.state = 'leased' AND ($1 = '' OR q.org_id = $1) AND ($2 = '' OR q.queue = $2) AND $3 = ''
 ORDER BY 5, 1
 LIMIT 1`,
	// A lease that was renewed began with the one that it renews.
	"tasks": `
WITH RECURSIVE held AS (
    SELECT o.task_id, o.task_type, o.worker, l.leased_at, l.renews
      FROM queues.open_task o
      JOIN queues.task_lease l USING (task_lease_id)
     WHERE o.leased_until IS NOT NULL AND $1 = '' AND $2 = '' AND ($3 = '' OR o.task_type = $3)
    UNION ALL
    SELECT h.task_id, h.task_type, h.worker, l.leased_at, l.renews
      FROM held h
      JOIN queues.task_lease l ON l.task_lease_id = h.renews
)
SELECT h.task_id::text, '', h.task_type, coalesce(h.worker, ''), h.leased_at
  FROM held h
 WHERE h.renews IS NULL
 ORDER BY 5, 1
 LIMIT 1`,
}

// LongestHeld returns the job of a kind that has been at work longest: of an organization, a named
// queue or a type of task, where they are not empty. ok is false when none is at work.
func LongestHeld(ctx context.Context, q store.Querier, kind, org, queue,
	taskType string,
) (h Holder, ok bool, err error) {
	list, err := store.Collect(ctx, q, pgx.RowToStructByPos[Holder], holderStatements[kind], org, queue, taskType)
	if len(list) > 0 {
		h, ok = list[0], true
	}
	return h, ok, store.Wrap("look what fills a limit", err)
}
