package diagnosis

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Lacking is a role that lacks rights.
type Lacking struct {
	Role string
	// Rights are those that it lacks, as "UPDATE on daybook.jobs".
	Rights []string
	// Connected: a session of this database is logged in as the role.
	Connected bool
}

// needed are rights that each of Daybook's roles has by `daybook migrate up --roles`, but for reading, which all of them may: role, right, and what it is
// on. A function stands for all of its name.
const needed = `
    ('daybook_domain', 'INSERT', 'daybook.documents'), ('daybook_domain', 'UPDATE', 'daybook.documents'),
    ('daybook_domain', 'INSERT', 'daybook.accounting_work_queue'), ('daybook_domain', 'UPDATE', 'daybook.accounting_work_queue'),
    ('daybook_domain', 'INSERT', 'daybook.jobs'), ('daybook_domain', 'UPDATE', 'daybook.jobs'), ('daybook_domain', 'INSERT', 'daybook.job_links'),
    ('daybook_worker', 'UPDATE', 'daybook.documents'), ('daybook_worker', 'UPDATE', 'daybook.accounting_work_queue'),
    ('daybook_worker', 'INSERT', 'daybook.jobs'), ('daybook_worker', 'UPDATE', 'daybook.jobs'), ('daybook_worker', 'DELETE', 'daybook.jobs'),
    ('daybook_worker', 'INSERT', 'daybook.job_links'), ('daybook_worker', 'INSERT', 'daybook.webhook_deliveries'),
    ('daybook_worker', 'UPDATE', 'daybook.webhook_deliveries'), ('daybook_worker', 'DELETE', 'daybook.webhook_deliveries'),
    ('daybook_worker', 'INSERT', 'daybook.job_workers'), ('daybook_worker', 'UPDATE', 'daybook.job_workers'), ('daybook_worker', 'DELETE', 'daybook.job_workers'),
    ('daybook_worker', 'INSERT', 'daybook.attempts'), ('daybook_worker', 'DELETE', 'daybook.attempts'), ('daybook_worker', 'INSERT', 'daybook.impacts'),
    ('daybook_worker', 'INSERT', 'daybook.entries'), ('daybook_worker', 'INSERT', 'daybook.confirmations'), ('daybook_worker', 'USAGE', 'daybook.fence_seq'),
    ('daybook_worker', 'USAGE', 'daybook.impact_id_seq'), ('daybook_server', 'INSERT', 'daybook.bulk_operations'), ('daybook_server', 'UPDATE', 'daybook.bulk_operations'),
    ('daybook_server', 'DELETE', 'daybook.bulk_operations'), ('daybook_server', 'INSERT', 'daybook.bulk_batches'), ('daybook_server', 'UPDATE', 'daybook.bulk_batches'),
    ('daybook_server', 'DELETE', 'daybook.bulk_batches')`

// LackingRights lists those of Daybook's roles that lack rights, with what they lack. Roles that were given nothing in this database are not used in it, and
// are left out.
func LackingRights(ctx context.Context, q store.Querier) ([]Lacking, error) {
	const stmt = `
WITH roles AS MATERIALIZED (
    SELECT r.oid, r.rolname
      FROM pg_roles r
     WHERE r.rolname IN ('daybook_reader', 'daybook_domain', 'daybook_worker', 'daybook_server')
       AND EXISTS (SELECT FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g WHERE c.relnamespace = to_regnamespace('daybook') AND g.grantee = r.oid)
), needed (role, right_name, object) AS (VALUES` + needed + `
), lacks AS (
    SELECT r.oid, r.rolname, n.right_name || ' on ' || n.object AS lack
      FROM roles r
      JOIN needed n ON n.role = r.rolname
     WHERE to_regclass(n.object) IS NOT NULL
       AND NOT CASE WHEN n.right_name = 'USAGE' THEN has_sequence_privilege(r.oid, to_regclass(n.object), 'USAGE') ELSE has_table_privilege(r.oid, to_regclass(n.object), n.right_name) END
    UNION ALL
    SELECT r.oid, r.rolname, 'SELECT on daybook.' || c.relname
      FROM roles r
      JOIN pg_class c ON c.relnamespace = to_regnamespace('daybook') AND c.relkind IN ('r', 'v')
     WHERE NOT has_any_column_privilege(r.oid, c.oid, 'SELECT')
    UNION ALL
    SELECT r.oid, r.rolname, 'USAGE on schema ' || s.name
      FROM roles r
     CROSS JOIN (VALUES ('daybook'), ('queues')) AS s (name)
     WHERE NOT has_schema_privilege(r.oid, s.name, 'USAGE')
)
SELECT l.rolname::text, array_agg(l.lack ORDER BY l.lack),
       EXISTS (SELECT FROM pg_stat_activity a WHERE a.usesysid = l.oid AND a.datname = current_database())
  FROM lacks l
 GROUP BY l.oid, l.rolname
 ORDER BY l.rolname`
	list, err := store.Collect(ctx, q, pgx.RowToStructByPos[Lacking], stmt)
	return list, store.Wrap("read the roles' rights", err)
}

// HasToken says whether a token of the HTTP API is valid.
func HasToken(ctx context.Context, q store.Querier) (has bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM daybook.api_tokens t WHERE t.revoked_at IS NULL)`).Scan(&has)
	return has, store.Wrap("look for tokens", err)
}
