package diagnosis

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// usedStatements say of each kind whether a job is due soon or leased, and whether there is any job
// at all.
var usedStatements = map[string]string{
	"accounting": `
SELECT EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp())
    OR EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE q.state = 'leased'),
       EXISTS (SELECT FROM daybook.accounting_work_queue)`,
	"jobs": `
SELECT EXISTS (SELECT FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id) JOIN daybook.jobs q ON q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp())
    OR EXISTS (SELECT FROM daybook.jobs q WHERE q.state = 'leased'),
       EXISTS (SELECT FROM daybook.jobs)`,
	"tasks": `
SELECT EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp())
    OR EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until IS NOT NULL),
       EXISTS (SELECT FROM queues.task)`,
}

// OpenOrUsed says whether a job of a kind is due or leased, and whether there is any job of it.
func OpenOrUsed(ctx context.Context, q store.Querier, kind string) (open, used bool, err error) {
	err = q.QueryRow(ctx, usedStatements[kind]).Scan(&open, &used)
	return open, used, store.Wrap("look whether there are jobs", err)
}
