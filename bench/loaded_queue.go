package main

import (
	"context"
	"time"
)

// loadedQueue is a queue that is put under load or fault: Daybook, or a peer with some settings.
type loadedQueue struct {
	name, template string
	// river, dbos and pgboss are the peer's settings; none: it is Daybook.
	river  *riverSettings
	dbos   *dbosSettings
	pgboss *pgbossSettings
	// node is what pg-boss runs on.
	node *nodePeers
	// economy is what Daybook's worker trades latency for processor time by; 0: its default.
	economy time.Duration
	// shared: Daybook's handlers write in transactions that jobs share.
	shared bool
	// patience is how long after the load the queue may take to be empty.
	patience time.Duration
	// open counts what is not finished, held lists the numbers of the jobs that a worker holds, or
	// that are held at all, found lists all jobs.
	open, held, found string
	// lost lists the numbers of the jobs that were lost with a worker; empty: that is not on record.
	lost string
	// scan reads the whole table of jobs.
	scan string
	// completed lists the numbers of the completed jobs and when the transaction that completed each
	// was committed.
	completed string
}

func daybookLoaded(patience time.Duration) loadedQueue {
	return loadedQueue{
		name: "Daybook", template: daybookTemplate, patience: patience,
		open:  `SELECT count(*) FROM daybook.jobs WHERE state IN ('pending', 'leased')`,
		held:  `SELECT (payload->>'number')::bigint FROM daybook.jobs WHERE state = 'leased' AND worker = $1`,
		found: `SELECT (payload->>'number')::bigint, state NOT IN ('pending', 'leased'), run_count > 1 FROM daybook.jobs`,
		lost: `
SELECT (j.payload->>'number')::bigint FROM daybook.jobs j JOIN daybook.attempts a ON a.job_id = j.id WHERE a.outcome = 'lost' AND a.worker = $1`,
		scan: `SELECT count(*) FROM daybook.jobs WHERE payload->>'number' = '-1'`,

		completed: `SELECT (payload->>'number')::bigint, pg_xact_commit_timestamp(xmin) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`,
	}
}

func riverLoaded(name string, s riverSettings, patience time.Duration) loadedQueue {
	return loadedQueue{
		name: name, template: riverTemplate, river: &s, patience: patience,
		open:  `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`,
		held:  `SELECT (args->>'number')::bigint FROM river_job WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1`,
		found: `SELECT (args->>'number')::bigint, finalized_at IS NOT NULL, attempt > 1 FROM river_job`,
		scan:  `SELECT count(*) FROM river_job WHERE args->>'number' = '-1'`,

		completed: `SELECT (args->>'number')::bigint, pg_xact_commit_timestamp(xmin) FROM river_job WHERE state = 'completed' AND attempt = 1`,
	}
}

// dbosNumber is the number of a job of dbosJobs, whose input DBOS's own serializer wrote.
const (
	dbosNumber = `(convert_from(decode(i.inputs, 'base64'), 'UTF8')::jsonb->>'number')::bigint`
	dbosJobs   = ` FROM dbos.workflow_status s JOIN dbos.workflow_input i USING (workflow_uuid)`
)

func dbosLoaded(s dbosSettings, patience time.Duration) loadedQueue {
	return loadedQueue{
		name: dbosName, template: dbosTemplate, dbos: &s, patience: patience,
		open:  `SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')`,
		held:  `SELECT ` + dbosNumber + dbosJobs + ` WHERE s.status = 'PENDING' AND s.executor_id = $1`,
		found: `SELECT ` + dbosNumber + `, s.status = 'SUCCESS', s.recovery_attempts > 1` + dbosJobs,
	}
}

func pgbossLoaded(node *nodePeers, s pgbossSettings, patience time.Duration) loadedQueue {
	return loadedQueue{
		name: pgbossName, template: pgbossTemplate, pgboss: &s, node: node, patience: patience,
		open: `SELECT count(*) FROM pgboss.job WHERE name = 'bench' AND state < 'completed'`,
		// A job does not say who holds it: of all that are held, the others' handlers name theirs.
		held: `
SELECT (data->>'number')::bigint FROM pgboss.job WHERE name = 'bench' AND state = 'active' AND $1::text IS NOT NULL`,
		found: `SELECT (data->>'number')::bigint, state = 'completed', retry_count > 0 FROM pgboss.job WHERE name = 'bench'`,
	}
}

// own says whether it is Daybook.
func (q loadedQueue) own() bool { return q.river == nil && q.dbos == nil && q.pgboss == nil }

// settings are how a peer works.
func (q loadedQueue) settings() string {
	switch {
	case q.river != nil:
		return q.river.String()
	case q.dbos != nil:
		return q.dbos.String()
	case q.pgboss != nil:
		return q.pgboss.String()
	}
	return ""
}

// start starts a process that works the queue, and does not wait until it does.
func (q loadedQueue) start(ctx context.Context, b *bench, url string, c processConfig,
	j *journal,
) (*queueProcess, error) {
	if q.pgboss != nil {
		config := q.pgboss.node("fault")
		config.DatabaseURL, config.Idle = url, c.Idle
		return b.startNode(q.node, "pgboss.mjs", config, j)
	}
	c.DatabaseURL, c.Economy, c.Shared = url, q.economy, q.shared
	switch {
	case q.river != nil:
		s := q.river
		c.Peer, c.MaxWorkers, c.Pool, c.FetchCooldown, c.RescueAfter = riverName, s.maxWorkers, s.pool, s.fetchCooldown,
			s.rescueAfter
	case q.dbos != nil:
		c.Peer, c.MaxWorkers, c.Pool, c.Polling = dbosName, q.dbos.concurrency, q.dbos.pool, q.dbos.polling
	}
	return b.startProcess(ctx, c, j)
}
