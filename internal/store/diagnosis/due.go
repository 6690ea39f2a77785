package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Reason is why a due job is not worked.
type Reason string

// The reasons, the first that holds. Free jobs are held back by nothing that the database knows of.
const (
	Paused    Reason = "paused"
	Foreign   Reason = "source"
	Unhandled Reason = "unhandled"
	Capped    Reason = "capped"
	Free      Reason = "free"
	// Of jobs in named queues: the queue is paused, no worker of its fleet lives, or it is at its
	// limit or its rate.
	QueuePaused   Reason = "queue paused"
	QueueUnworked Reason = "queue unworked"
	QueueLimited  Reason = "queue limited"
	// TooNew jobs need a version of their type's handler that no worker of their fleet has.
	TooNew Reason = "version"
)

// What a pause or a cap of tasks is of: their type, all tasks together, or both.
const (
	LimitOfType = "type"
	LimitOfAll  = "all"
	LimitOfBoth = "both"
)

// Due is a group of due jobs: of one type, held back by the same.
type Due struct {
	// Type is empty for accounting jobs.
	Type   string
	Reason Reason
	// OrgID is set where an organization holds them back: a pause or a cap.
	OrgID string
	// Needs are the source and the hooks that foreign jobs wait for, as text; of jobs that no handler
	// is new enough for, the version; of jobs that their
	// named queue holds back, its name; of tasks that are paused or capped, whose limit it is:
	// LimitOfType, LimitOfAll or LimitOfBoth.
	Needs string
	// Fleet is the fleet without a worker; empty: the one without a name.
	Fleet string
	Count int64
	// Since is when the one that has been due longest fell due; ID and ExampleOrg are its own. Of an
	// accounting job ID is the document's.
	Since      time.Time
	ID         string
	ExampleOrg string
	// Limit is the cap (0: the organization or queue is at its rate), and HeldSince when the pause began; zero where
	// there is none.
	Limit     int64
	HeldSince time.Time
}

// dueStatements group, of each kind, what has been due longest. $1 is the organization, or empty;
// $2 is Most.
var dueStatements = map[string]string{
	"accounting": `
WITH due AS MATERIALIZED (
    (SELECT q.document_id AS id, q.org_id, q.ready_at
       FROM daybook.accounting_work_queue q
      WHERE $1 = '' AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
      ORDER BY q.ready_at
      LIMIT $2)
    UNION ALL
    SELECT one.id, one.org_id, one.ready_at
      FROM generate_series(1, 3) AS p (priority)
     CROSS JOIN LATERAL (
           SELECT q.document_id AS id, q.org_id, q.ready_at
             FROM daybook.accounting_work_queue q
            WHERE $1 <> '' AND q.state = 'pending' AND q.priority = p.priority AND q.org_id = $1 AND q.ready_at <= statement_timestamp()
            ORDER BY q.ready_at
            LIMIT $2 / 3) one
), orgs AS MATERIALIZED (
    SELECT d.org_id, o.paused_at, coalesce(o.source, s.source) AS source, coalesce(o.hooks, s.hooks) AS hooks,
           CASE WHEN o.max_in_flight <= (SELECT count(*) FROM daybook.accounting_work_queue l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = o.id)
                THEN o.max_in_flight END AS cap
      FROM (SELECT DISTINCT due.org_id FROM due) d
     CROSS JOIN daybook.defaults s
      LEFT JOIN daybook.organizations o ON o.id = d.org_id
), held AS (
    SELECT d.id, d.org_id, d.ready_at, o.paused_at, o.cap,
           CASE WHEN o.paused_at IS NOT NULL THEN 'paused' WHEN o.source <> 'daybook' OR o.hooks <> '{}' THEN 'source'
                WHEN o.cap IS NOT NULL THEN 'capped' ELSE 'free' END AS reason,
           CASE WHEN o.paused_at IS NULL THEN concat_ws(', ', 'source ' || nullif(o.source, 'daybook'), 'hooks ' || nullif(array_to_string(o.hooks, ' '), '')) END AS needs
      FROM due d JOIN orgs o USING (org_id)
)
SELECT '', h.reason, CASE WHEN h.reason IN ('paused', 'capped') THEN h.org_id ELSE '' END, coalesce(CASE WHEN h.reason = 'source' THEN h.needs END, ''), '', count(*), min(h.ready_at),
       (array_agg(h.id ORDER BY h.ready_at))[1], (array_agg(h.org_id ORDER BY h.ready_at))[1], coalesce(max(h.cap), 0), max(h.paused_at)
  FROM held h
 GROUP BY 1, 2, 3, 4
 ORDER BY 7`,
	"jobs": `
WITH due AS MATERIALIZED (
    (SELECT one.id, one.org_id, one.type, one.queue, one.fleet, one.min_version, one.ready_at
       FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
      CROSS JOIN LATERAL (
            SELECT q.id, q.org_id, q.type, q.queue, q.fleet, q.min_version, q.ready_at
              FROM daybook.jobs q
             WHERE $1 = '' AND q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
             ORDER BY q.ready_at
             LIMIT $2) one
      ORDER BY one.ready_at
      LIMIT $2)
    UNION ALL
    SELECT one.id, one.org_id, one.type, one.queue, one.fleet, one.min_version, one.ready_at
      FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
     CROSS JOIN generate_series(1, 3) AS p (priority)
     CROSS JOIN LATERAL (
           SELECT q.id, q.org_id, q.type, q.queue, q.fleet, q.min_version, q.ready_at
             FROM daybook.jobs q
            WHERE $1 <> '' AND q.state = 'pending' AND q.fleet = f.id AND q.priority = p.priority AND q.org_id = $1 AND q.ready_at <= statement_timestamp()
            LIMIT $2 / 3) one
), orgs AS MATERIALIZED (
    SELECT d.org_id, o.paused_at,
           CASE WHEN o.max_in_flight <= (SELECT count(*) FROM daybook.jobs l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = o.id)
                THEN o.max_in_flight END AS cap,
           EXISTS (SELECT FROM daybook.organization_rates r
                    WHERE r.org_id = o.id AND r.starts < 1 AND r.at > statement_timestamp() - make_interval(secs => 10 + 2 * o.rate_seconds / o.rate)) AS spent
      FROM (SELECT DISTINCT due.org_id FROM due) d
      LEFT JOIN daybook.organizations o ON o.id = d.org_id
), handled AS MATERIALIZED (
    SELECT w.fleet, array_agg(t.type) AS types
      FROM daybook.live_job_workers w
     CROSS JOIN LATERAL unnest(w.types) AS t (type)
     GROUP BY w.fleet
), named AS MATERIALIZED (
    SELECT u.name, f.name AS fleet, u.paused_at, w.live = 0 AS unworked,
           CASE WHEN b.most <= (SELECT count(*) FROM daybook.jobs l WHERE l.state = 'leased' AND l.queue = u.name) THEN b.most END AS cap,
           EXISTS (SELECT FROM daybook.queue_rates r
                    WHERE r.queue = u.name AND r.starts < 1 AND r.at > statement_timestamp() - make_interval(secs => 10 + 2 * u.rate_seconds / u.rate)) AS spent
      FROM daybook.queues u JOIN daybook.fleets f ON f.id = u.fleet
     CROSS JOIN LATERAL (SELECT count(DISTINCT w.name) AS live FROM daybook.live_job_workers w
                          WHERE w.fleet = u.fleet AND w.id <> 'async-operations') w
     CROSS JOIN LATERAL (SELECT least(u.max_parallel, u.per_process * w.live) AS most) b
     WHERE u.name IN (SELECT due.queue FROM due)
), held AS (
    SELECT d.id, d.org_id, d.type, d.min_version, d.ready_at, coalesce(o.paused_at, n.paused_at) AS paused_at, n.name, n.fleet,
           CASE WHEN o.paused_at IS NOT NULL THEN 'paused' WHEN n.paused_at IS NOT NULL THEN 'queue paused' WHEN n.unworked THEN 'queue unworked'
                WHEN d.type <> ALL (h.types) THEN 'unhandled'
                WHEN d.min_version > 0 AND NOT EXISTS (
                     SELECT FROM daybook.live_job_workers w
                      WHERE w.fleet = CASE WHEN d.fleet < 0 THEN coalesce(u.fleet, 0) ELSE d.fleet END AND d.type = ANY (w.types) AND coalesce(w.versions[array_position(w.types, d.type)], 0) >= d.min_version) THEN 'version'
                WHEN o.cap IS NOT NULL OR o.spent THEN 'capped' WHEN n.cap IS NOT NULL OR n.spent THEN 'queue limited' ELSE 'free' END AS reason,
           CASE WHEN o.cap IS NOT NULL OR o.spent THEN o.cap ELSE n.cap END AS cap
      FROM due d JOIN orgs o USING (org_id)
      LEFT JOIN daybook.queues u ON u.name = d.queue AND d.fleet < 0
      LEFT JOIN handled h ON h.fleet = CASE WHEN d.fleet < 0 THEN coalesce(u.fleet, 0) ELSE d.fleet END
      LEFT JOIN named n ON n.name = d.queue
)
SELECT CASE WHEN h.reason IN ('unhandled', 'version', 'free') THEN h.type ELSE '' END, h.reason, CASE WHEN h.reason IN ('paused', 'capped') THEN h.org_id ELSE '' END,
       CASE WHEN h.reason LIKE 'queue %' THEN h.name WHEN h.reason = 'version' THEN h.min_version::text ELSE '' END, CASE WHEN h.reason = 'queue unworked' THEN h.fleet ELSE '' END, count(*), min(h.ready_at),
       (array_agg(h.id ORDER BY h.ready_at))[1], (array_agg(h.org_id ORDER BY h.ready_at))[1], coalesce(max(h.cap), 0), max(h.paused_at)
  FROM held h
 GROUP BY 1, 2, 3, 4, 5
 ORDER BY 7`,
	"tasks": `
WITH due AS MATERIALIZED (
    SELECT o.task_id, o.task_type, o.scheduled_at
      FROM queues.open_task o
     WHERE $1 = '' AND o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp()
     ORDER BY o.scheduled_at, o.task_id
     LIMIT $2
), types AS MATERIALIZED (
    SELECT d.task_type, least(own.paused_at, everything.paused_at) AS paused_at,
           CASE WHEN everything.paused_at IS NULL THEN 'type' WHEN own.paused_at IS NULL THEN 'all' ELSE 'both' END AS paused_by,
           CASE WHEN own.max_in_flight <= (SELECT count(*) FROM queues.open_task l WHERE l.task_type = d.task_type AND l.leased_until IS NOT NULL) THEN 'type' ELSE 'all' END AS capped_by,
           CASE WHEN own.max_in_flight <= (SELECT count(*) FROM queues.open_task l WHERE l.task_type = d.task_type AND l.leased_until IS NOT NULL) THEN own.max_in_flight
                WHEN everything.max_in_flight <= (SELECT count(*) FROM queues.open_task l WHERE l.leased_until IS NOT NULL) THEN everything.max_in_flight END AS cap
      FROM (SELECT DISTINCT due.task_type FROM due) d
      LEFT JOIN queues.task_limit own ON own.task_type = d.task_type
      LEFT JOIN queues.task_limit everything ON everything.task_type = '*'
), handled AS MATERIALIZED (
    SELECT array_agg(t.type) AS types FROM daybook.job_types t WHERE t.kind = 'tasks' AND t.last_seen > statement_timestamp() - interval '5 minutes'
), held AS (
    SELECT d.task_id, d.task_type, d.scheduled_at, t.paused_at, t.cap, t.paused_by, t.capped_by,
           CASE WHEN t.paused_at IS NOT NULL THEN 'paused' WHEN d.task_type <> ALL (h.types) THEN 'unhandled' WHEN t.cap IS NOT NULL THEN 'capped' ELSE 'free' END AS reason
      FROM due d JOIN types t USING (task_type) CROSS JOIN handled h
)
SELECT h.task_type, h.reason, '', coalesce(CASE h.reason WHEN 'paused' THEN h.paused_by WHEN 'capped' THEN h.capped_by END, ''), '', count(*), min(h.scheduled_at), (array_agg(h.task_id::text ORDER BY h.scheduled_at, h.task_id))[1], '', coalesce(max(h.cap), 0), max(h.paused_at)
  FROM held h
 GROUP BY 1, 2, 4
 ORDER BY 7`,
}

// DueJobs groups the due jobs of a kind, of those Most that have been due longest: of one
// organization, or, with the empty id, of all. The group that has waited longest is the first.
func DueJobs(ctx context.Context, q store.Querier, kind, org string) ([]Due, error) {
	groups, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (d Due, err error) {
		var held *time.Time
		err = row.Scan(&d.Type, &d.Reason, &d.OrgID, &d.Needs, &d.Fleet, &d.Count, &d.Since, &d.ID, &d.ExampleOrg, &d.Limit,
			&held)
		d.HeldSince = store.Value(held)
		return d, err
	}, dueStatements[kind], org, Most)
	return groups, store.Wrap("read what is due", err)
}
