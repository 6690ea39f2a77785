package figures

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// CountMost is how many jobs of a state are counted one by one; beyond it the count is an estimate.
const CountMost = 10_000

// maxTypes is how many types of a kind the gauges keep apart, and how many pairs of type and error
// code.
const maxTypes = 100

// counting is how the jobs of a kind are counted: statement returns state, type, error code, number
// and the earliest time at which one that is not paused fell due. Each state is read from its own
// partial index, up to a bound, so that completed jobs cost nothing.
type counting struct {
	statement string
	// arguments are those of statement, after the bound.
	arguments []any
	// oldest returns the earliest time at which a job fell due that is not paused.
	oldest string
	// organizations counts the due jobs of the organizations that have most of them.
	organizations string
	// shares says of jobs on some pages, chosen at random, how many are due and how many wait. $1 is
	// the share of the pages, in percent.
	shares string
	// table holds the jobs; indexes of pending, leased and failed ones say how many there are of
	// each, as of the last vacuum or analyze.
	table, pending, leased, failed string
}

var countings = map[string]counting{
	"accounting": {
		table: "daybook.accounting_work_queue", pending: "daybook.accounting_work_queue_ready",
		leased: "daybook.accounting_work_queue_stale", failed: "daybook.accounting_work_queue_failed",
		arguments: []any{store.StaleAfter.Seconds()},
		oldest: `
SELECT min(x.ready_at) FROM (
    SELECT q.ready_at FROM daybook.accounting_work_queue q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
       AND q.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))
     ORDER BY q.ready_at LIMIT 1) x`,
		statement: `
WITH due AS MATERIALIZED (
    SELECT q.org_id, q.ready_at FROM daybook.accounting_work_queue q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1 + 1
), waiting AS MATERIALIZED (
    SELECT FROM daybook.accounting_work_queue q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() ORDER BY q.ready_at LIMIT $1 + 1
), leased AS MATERIALIZED (
    SELECT q.last_attempted_at FROM daybook.accounting_work_queue q WHERE q.state = 'leased' ORDER BY q.last_attempted_at LIMIT $1 + 1
), failed AS MATERIALIZED (
    SELECT q.last_error_code FROM daybook.accounting_work_queue q WHERE q.state = 'failed' ORDER BY q.updated_at DESC LIMIT $1 + 1
)
SELECT 'due', '', '', count(*), min(d.ready_at) FILTER (WHERE d.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))) FROM due d
UNION ALL
SELECT 'waiting', '', '', count(*), NULL FROM waiting w
UNION ALL
SELECT 'leased', '', '', count(*), NULL FROM leased l
UNION ALL
SELECT 'stale', '', '', count(*), NULL FROM leased l WHERE l.last_attempted_at < statement_timestamp() - make_interval(secs => $2)
UNION ALL
SELECT 'failed', '', f.last_error_code, count(*), NULL FROM failed f GROUP BY f.last_error_code`,
		shares: `
SELECT count(*) FILTER (WHERE q.ready_at <= statement_timestamp()), count(*)
  FROM daybook.accounting_work_queue q TABLESAMPLE SYSTEM ($1) WHERE q.state = 'pending'`,
		organizations: `
SELECT d.org_id, count(*), min(d.ready_at)
  FROM (SELECT q.org_id, q.ready_at FROM daybook.accounting_work_queue q
         WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1) d
 GROUP BY d.org_id ORDER BY 2 DESC, 1 LIMIT $2`,
	},
	// Jobs of the fleet -1 are due, because a worker is to look at their limit; those of -2 stand in
	// the line of their key.
	"jobs": {
		table: "daybook.jobs", pending: "daybook.jobs_ready", leased: "daybook.jobs_stale", failed: "daybook.jobs_failed",
		arguments: []any{store.StaleAfter.Seconds()},
		oldest: `
SELECT min(x.ready_at) FROM (
    SELECT one.ready_at
      FROM (SELECT f.id FROM daybook.fleets f UNION ALL SELECT -1) f
     CROSS JOIN LATERAL (
           SELECT q.ready_at FROM daybook.jobs q
            WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
              AND q.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))
              AND (q.queue IS NULL OR q.queue <> ALL (ARRAY(SELECT u.name FROM daybook.queues u WHERE u.paused_at IS NOT NULL)))
            ORDER BY q.ready_at LIMIT 1) one) x`,
		statement: `
WITH due AS MATERIALIZED (
    SELECT one.org_id, one.type, one.queue, one.ready_at
      FROM (SELECT f.id FROM daybook.fleets f UNION ALL SELECT -1) f
     CROSS JOIN LATERAL (
           SELECT q.org_id, q.type, q.queue, q.ready_at FROM daybook.jobs q
            WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1 + 1) one
     ORDER BY one.ready_at LIMIT $1 + 1
), waiting AS MATERIALIZED (
    SELECT one.type
      FROM (SELECT f.id, statement_timestamp() AS beyond FROM daybook.fleets f UNION ALL VALUES (-1, statement_timestamp()), (-2, '-infinity')) f
     CROSS JOIN LATERAL (
           SELECT q.type, q.ready_at FROM daybook.jobs q
            WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > f.beyond ORDER BY q.ready_at LIMIT $1 + 1) one
     ORDER BY one.ready_at LIMIT $1 + 1
), leased AS MATERIALIZED (
    SELECT q.type, q.last_attempted_at FROM daybook.jobs q WHERE q.state = 'leased' ORDER BY q.last_attempted_at LIMIT $1 + 1
), failed AS MATERIALIZED (
    SELECT q.type, q.last_error_code FROM daybook.jobs q WHERE q.state = 'failed' ORDER BY q.finished_at DESC, q.id LIMIT $1 + 1
)
SELECT 'due', d.type, '', count(*), min(d.ready_at) FILTER (WHERE d.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))
       AND (d.queue IS NULL OR d.queue <> ALL (ARRAY(SELECT u.name FROM daybook.queues u WHERE u.paused_at IS NOT NULL)))) FROM due d GROUP BY d.type
UNION ALL
SELECT 'waiting', w.type, '', count(*), NULL FROM waiting w GROUP BY w.type
UNION ALL
SELECT 'leased', l.type, '', count(*), NULL FROM leased l GROUP BY l.type
UNION ALL
SELECT 'stale', '', '', count(*), NULL FROM leased l WHERE l.last_attempted_at < statement_timestamp() - make_interval(secs => $2)
UNION ALL
SELECT 'failed', f.type, f.last_error_code, count(*), NULL FROM failed f GROUP BY f.type, f.last_error_code
UNION ALL
SELECT DISTINCT 'handled', t.type, '', 0, NULL::timestamptz FROM daybook.live_job_workers w CROSS JOIN LATERAL unnest(w.types) AS t (type)`,
		shares: `
SELECT count(*) FILTER (WHERE q.ready_at <= statement_timestamp() AND q.fleet <> -2), count(*) FROM daybook.jobs q TABLESAMPLE SYSTEM ($1) WHERE q.state = 'pending'`,
		organizations: `
SELECT d.org_id, count(*), min(d.ready_at)
  FROM (SELECT one.org_id, one.ready_at
          FROM (SELECT f.id FROM daybook.fleets f UNION ALL SELECT -1) f
         CROSS JOIN LATERAL (
               SELECT q.org_id, q.ready_at FROM daybook.jobs q
                WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1) one
         ORDER BY one.ready_at LIMIT $1) d
 GROUP BY d.org_id ORDER BY 2 DESC, 1 LIMIT $2`,
	},
	"tasks": {
		table: "queues.open_task", pending: "queues.open_task_ready", leased: "queues.open_task_leased",
		failed: "queues.error_task",
		oldest: `
SELECT min(x.scheduled_at) FROM (
    SELECT o.scheduled_at FROM queues.open_task o
     WHERE o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp()
       AND NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', o.task_type) AND l.paused_at IS NOT NULL)
     ORDER BY o.scheduled_at, o.task_id LIMIT 1) x`,
		// A task is failed when it is completed and an error was noted of it. A task's error has no
		// code.
		statement: `
WITH due AS MATERIALIZED (
    SELECT o.task_type AS type, o.scheduled_at FROM queues.open_task o
     WHERE o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp() ORDER BY o.scheduled_at, o.task_id LIMIT $1 + 1
), waiting AS MATERIALIZED (
    SELECT o.task_type AS type FROM queues.open_task o
     WHERE o.leased_until IS NULL AND o.scheduled_at > statement_timestamp() ORDER BY o.scheduled_at, o.task_id LIMIT $1 + 1
), leased AS MATERIALIZED (
    SELECT o.task_type AS type, o.leased_until FROM queues.open_task o WHERE o.leased_until IS NOT NULL ORDER BY o.leased_until LIMIT $1 + 1
), errors AS MATERIALIZED (
    SELECT DISTINCT e.task_id FROM (SELECT x.task_id FROM queues.error x ORDER BY x.error_id DESC LIMIT $1 + 1) e
), failed AS MATERIALIZED (
    SELECT t.task_type AS type FROM errors e JOIN queues.task_completed c USING (task_id) JOIN queues.task t USING (task_id)
)
SELECT 'due', d.type, '', d.n, CASE WHEN NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', d.type) AND l.paused_at IS NOT NULL) THEN d.first END
  FROM (SELECT x.type, count(*) AS n, min(x.scheduled_at) AS first FROM due x GROUP BY x.type) d
UNION ALL
SELECT 'waiting', w.type, '', count(*), NULL FROM waiting w GROUP BY w.type
UNION ALL
SELECT 'leased', l.type, '', count(*), NULL FROM leased l GROUP BY l.type
UNION ALL
SELECT 'stale', '', '', count(*), NULL FROM leased l WHERE l.leased_until < statement_timestamp()
UNION ALL
SELECT 'failed', f.type, '', count(*), NULL FROM failed f GROUP BY f.type
UNION ALL
SELECT 'handled', t.type, '', 0, NULL FROM daybook.job_types t WHERE t.kind = 'tasks' AND t.last_seen > statement_timestamp() - interval '5 minutes'`,
		shares: `
SELECT count(*) FILTER (WHERE o.scheduled_at <= statement_timestamp()), count(*) FROM queues.open_task o TABLESAMPLE SYSTEM ($1) WHERE o.leased_until IS NULL`,
	},
}

// Count counts the jobs of a kind that are open or failed. It costs the same however many jobs were
// completed, and little more when many are open. The caller's transaction limits how long a
// statement may take: where an old snapshot keeps the rows of completed jobs, they are read as
// well.
func Count(ctx context.Context, q store.Querier, kind string) (Kind, error) {
	k := Kind{Kind: kind, Estimated: []string{}}
	c, known := countings[kind]
	if !known {
		return k, store.Invalid("there is no kind %q of queue", kind)
	}
	types := map[string]*Type{}
	of := func(name string) *Type {
		if types[name] == nil {
			types[name] = &Type{Type: name}
		}
		return types[name]
	}
	var state, jobType string
	var code *string
	var n int64
	var since *time.Time
	err := store.Each(ctx, q, []any{&state, &jobType, &code, &n, &since}, func() error {
		switch state {
		case "stale":
			k.StaleLeases = n
		case "handled":
			of(jobType)
		default:
			k.Add(state, n)
			t := of(jobType)
			t.Add(state, n)
			if state == Due && since != nil {
				t.OldestDueAt = new(*since)
				if k.OldestDueAt == nil || since.Before(*k.OldestDueAt) {
					k.OldestDueAt = t.OldestDueAt
				}
			}
			if state == Failed && n > 0 && store.Value(code) != "" {
				k.DeadLetters = append(k.DeadLetters, DeadLetters{Type: jobType, Code: *code, Count: n})
			}
		}
		return nil
	}, c.statement, append([]any{CountMost}, c.arguments...)...)
	if err != nil {
		return k, store.Wrap("count the jobs of the kind "+kind, err)
	}
	for _, t := range types {
		k.Types = append(k.Types, *t)
	}
	if err := c.estimate(ctx, q, &k); err != nil {
		return k, err
	}
	if k.OldestDueAt == nil && slices.Contains(k.Estimated, Due) {
		// All that were counted are paused: there may be others behind them.
		if err := q.QueryRow(ctx, c.oldest).Scan(&k.OldestDueAt); err != nil {
			return k, store.Wrap("look for the oldest due job of the kind "+kind, err)
		}
	}
	k.bound()
	return k, k.nameOwners(ctx, q)
}

// nameOwners says who answers for each type.
func (k *Kind) nameOwners(ctx context.Context, q store.Querier) error {
	names := make([]string, len(k.Types))
	for i, t := range k.Types {
		names[i] = t.Type
	}
	owners, err := store.Owners(ctx, q, k.Kind, names)
	for i := range k.Types {
		k.Types[i].Owner = owners[k.Types[i].Type]
	}
	return err
}

// CountOrganizations returns the organizations with the most due jobs, of those that have been due
// longest.
func CountOrganizations(ctx context.Context, q store.Querier, kind string) ([]Organization, error) {
	stmt := countings[kind].organizations
	if stmt == "" {
		return nil, nil
	}
	list, err := store.Collect(ctx, q, pgx.RowToStructByPos[Organization], stmt, CountMost, maxOrganizations)
	return list, store.Wrap("count the due jobs of organizations", err)
}

// maxOrganizations is how many organizations the gauges keep apart.
const maxOrganizations = 20

// bound keeps the busiest types and error codes apart. What is left out is in the counts of the
// kind.
func (k *Kind) bound() {
	slices.SortFunc(k.Types, func(a, b Type) int {
		return cmp.Or(cmp.Compare(b.Due+b.Leased+b.Failed+b.Waiting, a.Due+a.Leased+a.Failed+a.Waiting),
			cmp.Compare(a.Type, b.Type))
	})
	slices.SortFunc(k.DeadLetters, func(a, b DeadLetters) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Code, b.Code))
	})
	k.Types = k.Types[:min(len(k.Types), maxTypes)]
	k.DeadLetters = k.DeadLetters[:min(len(k.DeadLetters), maxTypes)]
}
