package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// What a Snapshot may be of.
const (
	Session  = "session"
	Prepared = "prepared transaction"
	Slot     = "replication slot"
)

// Snapshot is what keeps VACUUM from removing dead rows: a transaction that began before they were.
type Snapshot struct {
	// What is Session, Prepared or Slot.
	What string
	// Name is the session's process id, the prepared transaction's id, or the slot's name.
	Name string
	// User, Application, State and Query are the session's; User is the prepared transaction's owner
	// as well.
	User, Application, State, Query string
	// Since is when it began; zero: that is not known, of a slot.
	Since time.Time
	// Transactions is how many transactions began after it.
	Transactions int64
}

// Snapshots lists the sessions and prepared transactions of this database that are older than age,
// and the replication slots that hold rows back, the oldest first. A role without the rights of
// pg_read_all_stats sees its own sessions alone; whole says that it saw all.
func Snapshots(ctx context.Context, q store.Querier, age time.Duration) (list []Snapshot, whole bool, err error) {
	const stmt = `
SELECT 'session', a.pid::text, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(a.state, ''), left(coalesce(a.query, ''), 200), a.xact_start,
       greatest(age(a.backend_xmin), age(a.backend_xid))::bigint
  FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND num_nonnulls(a.backend_xmin, a.backend_xid) > 0
   AND a.backend_type <> 'autovacuum worker' AND a.xact_start < clock_timestamp() - make_interval(secs => $1)
UNION ALL
SELECT 'prepared transaction', p.gid, p.owner::text, '', 'prepared', '', p.prepared, age(p.transaction)::bigint
  FROM pg_prepared_xacts p
 WHERE p.database = current_database() AND p.prepared < clock_timestamp() - make_interval(secs => $1)
UNION ALL
SELECT 'replication slot', s.slot_name::text, '', coalesce(s.plugin::text, s.slot_type), CASE WHEN s.active THEN 'active' ELSE 'inactive' END, '', NULL,
       greatest(age(s.xmin), age(s.catalog_xmin))::bigint
  FROM pg_replication_slots s
 WHERE NOT s.active AND num_nonnulls(s.xmin, s.catalog_xmin) > 0 AND greatest(age(s.xmin), age(s.catalog_xmin)) > 10000
 ORDER BY 7 NULLS LAST
 LIMIT 20`
	const seesAll = `SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')`
	if err = q.QueryRow(ctx, seesAll).Scan(&whole); err != nil {
		return nil, false, store.Wrap("look for old snapshots", err)
	}
	list, err = store.Collect(ctx, q, func(row pgx.CollectableRow) (s Snapshot, err error) {
		var since *time.Time
		var transactions *int64
		err = row.Scan(&s.What, &s.Name, &s.User, &s.Application, &s.State, &s.Query, &since, &transactions)
		s.Since, s.Transactions = store.Value(since), store.Value(transactions)
		return s, err
	}, stmt, age.Seconds())
	return list, whole, store.Wrap("look for old snapshots", err)
}
