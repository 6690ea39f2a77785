package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// lastsFrom is from when on a wait or a lock is no passing one.
const lastsFrom = 2 * time.Second

// Standby is how commits wait for synchronous standbys.
type Standby struct {
	// Names is the server's synchronous_standby_names. Missing: it names one, and no synchronous
	// standby is connected.
	Names   string
	Missing bool
	// Waiting counts the sessions of this database whose commit waits, Since is since when the first
	// does; zero: none does, or the role may not see it.
	Waiting int64
	Since   time.Time
	// Patroni says that Patroni is connected, which writes the server's settings. Overrides are those
	// of synchronous commits that ALTER SYSTEM has set, and that its manager does not undo; a role
	// without the rights of pg_read_all_settings sees none.
	Patroni   bool
	Overrides []string
}

// ReadStandby looks whether commits wait for a synchronous standby. A role without the rights of
// pg_read_all_stats sees only whether one is missing.
func ReadStandby(ctx context.Context, q store.Querier) (s Standby, err error) {
	const stmt = `
SELECT n.names, n.names <> '' AND current_setting('synchronous_commit') NOT IN ('off', 'local')
         AND NOT EXISTS (SELECT FROM pg_stat_replication r WHERE coalesce(r.sync_state, 'sync') IN ('sync', 'quorum')),
       w.waiting, w.since,
       EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'Patroni%'),
       ARRAY(SELECT name FROM pg_settings WHERE name IN ('synchronous_commit', 'synchronous_standby_names') AND sourcefile LIKE '%/postgresql.auto.conf')
  FROM (SELECT current_setting('synchronous_standby_names') AS names) n
 CROSS JOIN (SELECT count(*) AS waiting, min(a.query_start) AS since
               FROM pg_stat_activity a
              WHERE a.datname = current_database() AND a.wait_event = 'SyncRep' AND a.query_start < clock_timestamp() - make_interval(secs => $1)) w`
	var since *time.Time
	err = q.QueryRow(ctx, stmt, lastsFrom.Seconds()).Scan(&s.Names, &s.Missing, &s.Waiting, &since,
		&s.Patroni, &s.Overrides)
	s.Since = store.Value(since)
	return s, store.Wrap("look for synchronous standbys", err)
}

// Timeline reads the timeline that the primary writes; 0: the server does not say.
func Timeline(ctx context.Context, q store.Querier) (timeline int64, err error) {
	if err = q.QueryRow(ctx, `SELECT `+hosts.TimelineSQL).Scan(&timeline); store.SQLState(err) != "" {
		return 0, nil
	}
	return timeline, store.Wrap("read the timeline", err)
}

// TableLock is a transaction that keeps all others from writing tables of one kind.
type TableLock struct {
	// Kind is whose table it is; empty: a table that kinds share. Table is one of them, and Tables
	// how many the transaction has locked.
	Kind, Table string
	Tables      int64
	// PID is the session's; 0: it is the prepared transaction Prepared.
	PID                             int32
	Prepared                        string
	User, Application, State, Query string
	// Since is when the transaction began, or, where the role may not see that, since when another
	// session waits for it.
	Since time.Time
	// Waiting counts the sessions that wait for one of the tables.
	Waiting int64
}

// TableLocks lists the transactions that have held a lock on a whole table of Daybook's for a
// while, in a mode that keeps others from writing it.
func TableLocks(ctx context.Context, q store.Querier) ([]TableLock, error) {
	const stmt = `
SELECT CASE WHEN n.nspname = 'queues' THEN 'tasks' WHEN c.relname = 'jobs' THEN 'jobs' WHEN c.relname = 'accounting_work_queue' THEN 'accounting' ELSE '' END AS kind,
       min(n.nspname || '.' || c.relname), count(DISTINCT c.oid), coalesce(l.pid, 0), coalesce(p.gid, ''), coalesce(min(a.usename::text), ''), coalesce(min(a.application_name), ''),
       coalesce(min(a.state), ''), coalesce(left(min(a.query), 200), ''), coalesce(min(a.xact_start), min(p.prepared), min(w.since)), coalesce(sum(w.waiting), 0)::bigint
  FROM pg_locks l
  JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p')
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname IN ('daybook', 'queues')
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND l.virtualtransaction = '-1/' || p.transaction
 CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(b.waitstart) AS since
                       FROM pg_locks b
                      WHERE NOT b.granted AND b.locktype = 'relation' AND b.database = l.database AND b.relation = l.relation) w
 WHERE l.locktype = 'relation' AND l.granted AND l.mode = ANY ($2)
   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
 GROUP BY 1, l.pid, p.gid
HAVING coalesce(min(a.xact_start), min(w.since)) < clock_timestamp() - make_interval(secs => $1) OR l.pid IS NULL
 ORDER BY 10, 1
 LIMIT 20`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (t TableLock, err error) {
		var since *time.Time
		err = row.Scan(&t.Kind, &t.Table, &t.Tables, &t.PID, &t.Prepared, &t.User, &t.Application, &t.State, &t.Query,
			&since, &t.Waiting)
		t.Since = store.Value(since)
		return t, err
	}, stmt, lastsFrom.Seconds(), store.TableLockModes)
	return list, store.Wrap("look for locked tables", err)
}
