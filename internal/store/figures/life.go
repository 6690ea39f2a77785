package figures

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models/locks"
)

// ReadSessions returns the process ids of the sessions on which a worker shows that it lives; none:
// it shows it in no way.
func ReadSessions(ctx context.Context, q store.Querier, worker string) (pids []int32, err error) {
	const stmt = `
SELECT coalesce(array_agg(pid), '{}') FROM pg_locks
 WHERE locktype = 'advisory' AND classid = $1::integer::oid AND objid = hashtext($2)::oid AND objsubid = 2 AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	err = q.QueryRow(ctx, stmt, locks.Workers, worker).Scan(&pids)
	return pids, store.Wrap("read the sessions of the process that samples", err)
}

// HolderEnded reports whether the process that took the sample showed that it lives, and does so no
// more. A new process of the same name has other sessions. One that lives, and whose sessions all
// ended, is taken for one that ended: another process samples then, and nothing is lost.
func HolderEnded(ctx context.Context, q store.Querier, g Gauges) (ended bool, err error) {
	const stmt = `
SELECT NOT EXISTS (
       SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = $1::integer::oid AND objsubid = 2 AND granted AND pid = ANY ($2::integer[])
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
	if len(g.Database.Sessions) == 0 {
		return false, nil
	}
	err = q.QueryRow(ctx, stmt, locks.Workers, g.Database.Sessions).Scan(&ended)
	return ended, store.Wrap("look whether the process that samples lives", err)
}
