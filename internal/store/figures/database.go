package figures

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// OldestSnapshot returns the session, prepared transaction or replication slot that keeps the
// oldest dead rows of this database from being removed; nil: none does. before is what it returned
// the last time: where the server does not tell when it began, it has been there since it was first
// seen. Without the rights of pg_read_all_stats the server does not tell of other roles' sessions.
func OldestSnapshot(ctx context.Context, q store.Querier, before *Snapshot) (*Snapshot, error) {
	const stmt = `
SELECT h.holder, h.xmin::text, h.since, statement_timestamp()
  FROM (SELECT 'session ' || a.pid || coalesce(' of ' || a.usename, '') || coalesce(' (' || nullif(a.application_name, '') || ')', '') AS holder,
               coalesce(a.backend_xmin, a.backend_xid) AS xmin, a.xact_start AS since
          FROM pg_catalog.pg_stat_activity a
         WHERE a.pid <> pg_backend_pid() AND (a.datname = current_database() OR a.backend_type = 'walsender')
           AND a.backend_type IN ('client backend', 'background worker', 'walsender')
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum v WHERE v.pid = a.pid)
        UNION ALL
        SELECT 'prepared transaction ' || p.gid, p.transaction, p.prepared FROM pg_catalog.pg_prepared_xacts p WHERE p.database = current_database()
        UNION ALL
        SELECT 'replication slot ' || s.slot_name, s.xmin, NULL FROM pg_catalog.pg_replication_slots s) h
 WHERE h.xmin IS NOT NULL
 ORDER BY age(h.xmin) DESC, h.since
 LIMIT 1`
	var s Snapshot
	var since *time.Time
	var now time.Time
	err := q.QueryRow(ctx, stmt).Scan(&s.Holder, &s.Xmin, &since, &now)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // none holds one
	case err != nil:
		return nil, store.Wrap("look for the oldest snapshot", err)
	case since != nil:
		s.Since = *since
	case before != nil && before.Holder == s.Holder && before.Xmin == s.Xmin:
		s.Since = before.Since
	default:
		s.Since = now
	}
	return &s, nil
}

// ReadTables reads how many rows and dead rows the tables of the queues have, as the server's
// statistics say.
func ReadTables(ctx context.Context, q store.Querier) ([]Table, error) {
	const stmt = `
SELECT s.schemaname || '.' || s.relname, s.n_live_tup, s.n_dead_tup, greatest(s.last_vacuum, s.last_autovacuum)
  FROM pg_catalog.pg_stat_user_tables s
 WHERE s.relid = ANY (ARRAY['daybook.accounting_work_queue', 'daybook.jobs', 'daybook.documents', 'queues.open_task', 'queues.task_cursor']::regclass[])
 ORDER BY 1`
	tables, err := store.Collect(ctx, q, pgx.RowToStructByPos[Table], stmt)
	return tables, store.Wrap("read the statistics of the queues' tables", err)
}

// CountPausedOrganizations counts them, up to 1000.
func CountPausedOrganizations(ctx context.Context, q store.Querier) (n int64, err error) {
	const stmt = `SELECT count(*) FROM (SELECT FROM daybook.organizations o WHERE o.paused_at IS NOT NULL LIMIT 1000) p`
	err = q.QueryRow(ctx, stmt).Scan(&n)
	return n, store.Wrap("count the paused organizations", err)
}
