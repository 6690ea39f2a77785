package diagnosis

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// Stale are the leases of a kind that no worker renews.
type Stale struct {
	Count int64
	// Since is when the oldest of them expired, Worker who held it.
	Since  time.Time
	Worker string
}

// staleStatements count, of each kind, leases that expired more than $1 seconds ago; $2 is Most.
var staleStatements = map[string]string{
	"accounting": `
SELECT count(*), coalesce(min(l.expired), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.expired))[1], '')
  FROM (SELECT q.last_attempted_at + interval '10 seconds' AS expired, q.worker
          FROM daybook.accounting_work_queue q
         WHERE q.state = 'leased' AND q.last_attempted_at < statement_timestamp() - make_interval(secs => $1 + 10)
         ORDER BY q.last_attempted_at
         LIMIT $2) l`,
	"jobs": `
SELECT count(*), coalesce(min(l.expired), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.expired))[1], '')
  FROM (SELECT q.last_attempted_at + interval '10 seconds' AS expired, q.worker
          FROM daybook.jobs q
         WHERE q.state = 'leased' AND q.last_attempted_at < statement_timestamp() - make_interval(secs => $1 + 10)
         ORDER BY q.last_attempted_at
         LIMIT $2) l`,
	"tasks": `
SELECT count(*), coalesce(min(l.leased_until), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.leased_until))[1], '')
  FROM (SELECT o.leased_until, o.worker
          FROM queues.open_task o
         WHERE o.leased_until < statement_timestamp() - make_interval(secs => $1)
         ORDER BY o.leased_until
         LIMIT $2) l`,
}

// StaleLeases counts the leases of a kind that expired longer ago than grace and that no worker has reclaimed.
func StaleLeases(ctx context.Context, q store.Querier, kind string, grace time.Duration) (s Stale, err error) {
	err = q.QueryRow(ctx, staleStatements[kind], grace.Seconds(), Most).Scan(&s.Count, &s.Since, &s.Worker)
	return s, store.Wrap("read stale leases", err)
}
