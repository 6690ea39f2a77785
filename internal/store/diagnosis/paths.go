package diagnosis

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Creator is who may create objects in a schema of a search path that workers have, and is none of
// the roles who may act as those workers anyway. All names are quoted as SQL needs it.
type Creator struct {
	Schema string
	// Grantee is the role; empty: every role may.
	Grantee string
	// Roles are the workers' roles that have the schema on their path, in their order. Rest is the
	// path of the first one without it.
	Roles []string
	Rest  string
	// Database is the one that was looked at.
	Database string
}

// Creators lists who may create objects on the search paths of roles that can work: Daybook's own,
// this session's, and those that programs are logged in as which call themselves daybook. The
// schemas' owners are left out, as are superusers and the members of a worker's role. A path that
// the server's configuration file sets, or the address of another program, is not known: those
// count as PostgreSQL's default.
func Creators(ctx context.Context, q store.Querier) ([]Creator, error) {
	const stmt = `
WITH roles AS MATERIALIZED (
    SELECT r.oid, r.rolname, r.rolname = session_user AS own
      FROM pg_roles r
     WHERE (r.rolname IN ('daybook_worker', 'daybook_server', session_user)
            OR r.oid IN (SELECT a.usesysid FROM pg_stat_activity a WHERE a.datname = current_database() AND a.application_name LIKE 'daybook%'))
       AND (r.rolname = 'worker_service_user' OR has_table_privilege(r.oid, to_regclass('daybook.impacts'), 'INSERT'))
), paths AS (
    SELECT r.oid, r.rolname,
           coalesce(
               CASE WHEN r.own THEN (SELECT g.reset_val FROM pg_settings g WHERE g.name = 'search_path') END,
               (SELECT substr(c, length('search_path=') + 1)
                  FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) c
                 WHERE c LIKE 'search\_path=%' AND s.setrole IN (r.oid, 0)
                   AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
                 ORDER BY s.setrole = 0, s.setdatabase = 0
                 LIMIT 1),
               '"$user", public') AS path
      FROM roles r
), schemas AS (
    SELECT p.oid, p.rolname, m.place, CASE WHEN w.word = '$user' THEN p.rolname ELSE w.word::name END AS name
      FROM paths p
     CROSS JOIN LATERAL regexp_matches(p.path, '"((?:[^"]|"")*)"|([^,\s"]+)', 'g') WITH ORDINALITY m (words, place)
     CROSS JOIN LATERAL (SELECT coalesce(replace(m.words[1], '""', '"'), lower(m.words[2])) AS word) w
)
SELECT quote_ident(n.nspname), CASE WHEN a.grantee = 0 THEN '' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
       array_agg(quote_ident(s.rolname) ORDER BY s.rolname),
       (array_agg(coalesce((SELECT string_agg(quote_ident(o.name), ', ' ORDER BY o.place) FROM schemas o WHERE o.oid = s.oid AND o.name <> n.nspname), 'pg_catalog') ORDER BY s.rolname))[1],
       quote_ident(current_database())
  FROM schemas s
  JOIN pg_namespace n ON n.nspname = s.name AND n.nspname <> 'pg_catalog'
 CROSS JOIN LATERAL aclexplode(n.nspacl) a
 WHERE a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner AND has_schema_privilege(s.oid, n.oid, 'USAGE')
   AND (a.grantee = 0 OR NOT pg_has_role(a.grantee, s.oid, 'MEMBER'))
 GROUP BY n.nspname, a.grantee
 ORDER BY a.grantee <> 0, 1, 2
 LIMIT 20`
	list, err := store.Collect(ctx, q, pgx.RowToStructByPos[Creator], stmt)
	return list, store.Wrap("look who may create objects on the workers' search paths", err)
}
