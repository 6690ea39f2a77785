package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
)

// pgbossName is the peer's name in the table.
const pgbossName = "pg-boss"

// pgbossSettings are how the processes of pg-boss work (pgboss.io/api/workers). They fetch on
// without a pause while batches are full (burstWhenBatchFull), which batches of one never are.
type pgbossSettings struct {
	// concurrency is localConcurrency: how many batches a process works side by side; batch is
	// batchSize. A process has a connection for each batch, and three.
	concurrency, batch int
	// heartbeat is heartbeatSeconds of the jobs, and monitor how often their heartbeats are looked at,
	// in seconds; 0: none is looked at, and once a minute.
	heartbeat, monitor int
	// polling is notifyPollingIntervalSeconds: how often it looks for jobs that are not announced; 0:
	// every 30 seconds.
	polling float64
}

func (s pgbossSettings) String() string {
	text := fmt.Sprintf("localConcurrency %d, batchSize %d", s.concurrency, s.batch)
	if s.heartbeat > 0 {
		text += fmt.Sprintf(", heartbeatSeconds %d, monitorIntervalSeconds %d", s.heartbeat, s.monitor)
	}
	return text
}

// The settings that pg-boss's best are looked for among, for each contract. Batches of two are the
// nearest to a transaction a job, in which it does not pause after each.
var (
	pgbossNoopVariants = []pgbossSettings{
		{concurrency: 1, batch: 1000},
		{concurrency: 2, batch: 500},
		{concurrency: 2, batch: 2000},
		{concurrency: 4, batch: 1000},
	}
	pgbossOwnVariants = []pgbossSettings{
		{concurrency: 2, batch: 2}, {concurrency: 5, batch: 2}, {concurrency: 10, batch: 2}, {concurrency: 20, batch: 2},
	}
	// Batches of as many jobs as share a transaction of Daybook's at most.
	pgbossSharedVariants = []pgbossSettings{
		{concurrency: 1, batch: 32}, {concurrency: 2, batch: 32}, {concurrency: 4, batch: 32}, {concurrency: 8, batch: 32},
	}
	pgbossBulkVariants = []pgbossSettings{
		{concurrency: 1, batch: 500}, {concurrency: 2, batch: 500}, {concurrency: 4, batch: 500},
	}
)

// pgbossQuick are settings for latency: one worker, which a notification has fetch at once.
var pgbossQuick = pgbossSettings{concurrency: 1, batch: 10}

// pgbossWatchful are settings that find a dead worker as soon as pg-boss allows: heartbeats of ten
// seconds, looked at every second (pgboss.io/api/queues, Heartbeat vs expiration), and polls for
// the jobs that are tried again.
var pgbossWatchful = pgbossSettings{concurrency: 50, batch: 1, heartbeat: 10, monitor: 1, polling: 0.5}

// node is the configuration of a process.
func (s pgbossSettings) node(handler string) nodeConfig {
	return nodeConfig{
		Handler: handler, Concurrency: s.concurrency, Pool: s.concurrency + 3, Batch: s.batch, Monitor: s.monitor,
		Polling: s.polling,
	}
}

// addPgboss adds jobs as pgboss.io/sql/job-table documents for programs that do not run on node.
const addPgboss = `
INSERT INTO pgboss.job (name, policy, heartbeat_seconds, data)
SELECT 'bench', 'standard', nullif($2::int, 0), j FROM unnest($1::jsonb[]) j`

// notifyPgboss announces them as pg-boss's own send does for a queue with notify.
const notifyPgboss = `SELECT pg_notify('pgboss_' || left(encode(sha224('pgboss'::bytea), 'hex'), 24), 'bench')`

// enqueuePgboss adds and announces jobs in a transaction of the application.
func enqueuePgboss[J any](ctx context.Context, tx pgx.Tx, heartbeat int, jobs []J) error {
	batch := &pgx.Batch{}
	batch.Queue(addPgboss, jobs, heartbeat)
	batch.Queue(notifyPgboss)
	return tx.SendBatch(ctx, batch).Close()
}

// drainPgboss drains n jobs by two processes, on a database of its own: jobs that do nothing, or
// that post their rows in the transaction that completes their batch.
func (b *bench) drainPgboss(ctx context.Context, peers *nodePeers, s pgbossSettings, handler string,
	n int,
) (took drained, err error) {
	err = b.withDatabase(ctx, pgbossTemplate, func(d *database) error {
		for begin := 0; begin < n; begin += fillBatch {
			some := make([]benchJob, min(fillBatch, n-begin))
			for i := range some {
				some[i] = newBenchJob(begin + i)
			}
			if _, err := d.pool.Exec(ctx, addPgboss, some, 0); err != nil {
				return fmt.Errorf("add jobs: %w", err)
			}
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		took, err = b.drainNode(ctx, d, peers, "pgboss.mjs", s.node(handler), n,
			`SELECT EXISTS (SELECT FROM pgboss.job WHERE name = 'bench' AND state < 'completed')`)
		if err != nil {
			return err
		}
		return verifyPgboss(ctx, d, n, strings.HasPrefix(handler, "post"))
	})
	if err != nil {
		return took, fmt.Errorf("%s, %s: %w", pgbossName, s, err)
	}
	b.say("  %s, %s: %s jobs/s", pgbossName, s, report.Figure(perSecond(n, took.took)))
	return took, nil
}

// withPgboss runs f, on a database of its own, while a process works jobs that do nothing. Their
// beginnings go to the journal.
func (b *bench) withPgboss(ctx context.Context, node *nodePeers, s pgbossSettings,
	f func(d *database, j *journal) error,
) error {
	err := b.withDatabase(ctx, pgbossTemplate, func(d *database) error {
		j, config := newJournal(), s.node("noop")
		config.DatabaseURL = d.url
		p, err := b.startNode(node, "pgboss.mjs", config, j)
		if err != nil {
			return err
		}
		if err = awaitReady(ctx, p); err == nil {
			err = f(d, j)
		}
		return errors.Join(err, p.stop())
	})
	if err != nil {
		return fmt.Errorf("%s, %s: %w", pgbossName, s, err)
	}
	return nil
}

// verifyPgboss fails unless there are n jobs, each was completed by its first attempt, and has its
// three rows if it posts.
func verifyPgboss(ctx context.Context, d *database, n int, posts bool) error {
	var all, completed int
	err := d.pool.QueryRow(ctx, `
SELECT count(*), count(*) FILTER (WHERE state = 'completed' AND retry_count = 0)
  FROM pgboss.job WHERE name = 'bench'`).Scan(&all, &completed)
	if err != nil {
		return fmt.Errorf("count pg-boss's jobs: %w", err)
	}
	if all != n || completed != n {
		return fmt.Errorf("of %d jobs %d are there and %d completed", n, all, completed)
	}
	if !posts {
		return nil
	}
	right, err := postedOnce(ctx, d.pool)
	if err == nil && right != n {
		err = fmt.Errorf("of %d jobs %d are posted exactly once", n, right)
	}
	return err
}
