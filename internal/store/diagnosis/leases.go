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

// liveStatements say of each kind whether a worker holds a lease that has not expired.
var liveStatements = map[string]string{
	"accounting": `SELECT EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() - interval '10 seconds')`,
	"jobs":       `SELECT EXISTS (SELECT FROM daybook.jobs q WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() - interval '10 seconds')`,
	"tasks":      `SELECT EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until > statement_timestamp())`,
}

// LiveLeases says whether a worker works a job of a kind for longer than a moment: then a job may
// take minutes.
func LiveLeases(ctx context.Context, q store.Querier, kind string) (live bool, err error) {
	err = q.QueryRow(ctx, liveStatements[kind]).Scan(&live)
	return live, store.Wrap("look for leases", err)
}

// staleStatements count, of each kind, leases that expired more than $1 seconds ago; $2 is Most, $3
// the organization or empty.
var staleStatements = map[string]string{
	"accounting": `
SELECT count(*), coalesce(min(l.expired), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.expired))[1], '')
  FROM (SELECT q.last_attempted_at + interval '10 seconds' AS expired, q.worker
          FROM daybook.accounting_work_queue q
         WHERE q.state = 'leased' AND q.last_attempted_at < statement_timestamp() - make_interval(secs => $1 + 10) AND ($3 = '' OR q.org_id = $3)
         ORDER BY q.last_attempted_at
         LIMIT $2) l`,
	"jobs": `
SELECT count(*), coalesce(min(l.expired), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.expired))[1], '')
  FROM (SELECT q.last_attempted_at + interval '10 seconds' AS expired, q.worker
          FROM daybook.jobs q
         WHERE q.state = 'leased' AND q.last_attempted_at < statement_timestamp() - make_interval(secs => $1 + 10) AND ($3 = '' OR q.org_id = $3)
         ORDER BY q.last_attempted_at
         LIMIT $2) l`,
	"tasks": `
SELECT count(*), coalesce(min(l.leased_until), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.leased_until))[1], '')
  FROM (SELECT o.leased_until, o.worker
          FROM queues.open_task o
         WHERE o.leased_until < statement_timestamp() - make_interval(secs => $1) AND $3 = ''
         ORDER BY o.leased_until
         LIMIT $2) l`,
}

// StaleLeases counts the leases of a kind that expired longer ago than grace and that no worker has
// reclaimed: those of one organization or, with the empty id, all.
func StaleLeases(ctx context.Context, q store.Querier, kind, org string, grace time.Duration) (s Stale, err error) {
	err = q.QueryRow(ctx, staleStatements[kind], grace.Seconds(), Most, org).Scan(&s.Count, &s.Since, &s.Worker)
	return s, store.Wrap("read stale leases", err)
}

// aheadStatements look for leases and jobs that wait, of each kind, whose last change is more than
// ten seconds ahead of the clock, among the jobs that fall due next. $1 is an organization, of
// which nothing is said, or empty; $2 is Most.
var aheadStatements = map[string]string{
	"accounting": `
SELECT count(*), coalesce(max(a.at), 'epoch')
  FROM ((SELECT q.last_attempted_at AS at
           FROM daybook.accounting_work_queue q
          WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() + interval '10 seconds'
          ORDER BY q.last_attempted_at
          LIMIT $2)
        UNION ALL
        (SELECT q.updated_at
           FROM daybook.accounting_work_queue q
          WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
          ORDER BY q.ready_at
          LIMIT $2)) a
 WHERE $1 = '' AND a.at > statement_timestamp() + interval '10 seconds'`,
	"jobs": `
SELECT count(*), coalesce(max(a.at), 'epoch')
  FROM ((SELECT q.last_attempted_at - CASE WHEN daybook.is_async_operation_claim(q.turn_id) THEN daybook.async_operation_lease() ELSE '0' END AS at
           FROM daybook.jobs q
          WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() + interval '10 seconds'
          ORDER BY q.last_attempted_at
          LIMIT $2)
        UNION ALL
        (SELECT one.at
           FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
          CROSS JOIN LATERAL (
                SELECT q.updated_at AS at
                  FROM daybook.jobs q
                 WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                 ORDER BY q.ready_at
                 LIMIT $2) one
          LIMIT $2)) a
 WHERE $1 = '' AND a.at > statement_timestamp() + interval '10 seconds'`,
	"tasks": `
SELECT count(*), coalesce(max(a.at), 'epoch')
  FROM ((SELECT o.leased_until - interval '5 minutes' AS at
           FROM queues.open_task o
          WHERE o.leased_until > statement_timestamp() + interval '310 seconds'
          ORDER BY o.leased_until
          LIMIT $2)
        UNION ALL
        (SELECT t.enqueued_at
           FROM (SELECT o.task_id
                   FROM queues.open_task o
                  WHERE o.leased_until IS NULL AND o.scheduled_at > statement_timestamp()
                  ORDER BY o.scheduled_at, o.task_id
                  LIMIT $2) w
           JOIN queues.task t ON t.task_id = w.task_id)) a
 WHERE $1 = '' AND a.at > statement_timestamp() + interval '10 seconds'`,
}

// JobsAhead counts the jobs of a kind whose last change is ahead of the database's clock, and says
// when the last of these changes was; of one organization it says nothing.
func JobsAhead(ctx context.Context, q store.Querier, kind, org string) (n int64, last time.Time, err error) {
	err = q.QueryRow(ctx, aheadStatements[kind], org, Most).Scan(&n, &last)
	return n, last, store.Wrap("look for times ahead of the clock", err)
}
