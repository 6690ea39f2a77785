package released

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// surface lists the columns of tables and views, and the functions that statements may call. What a
// function takes is a line a parameter: one that is added, and need not be given, changes no line.
const surface = `
WITH function AS MATERIALIZED (
    SELECT p.oid, format('%I.%I', n.nspname, p.proname) AS name, p.pronargs - p.pronargdefaults AS must, pg_get_function_result(p.oid) AS result,
           CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
           || CASE WHEN p.prosecdef THEN ', with the rights of its owner' ELSE '' END
           || CASE WHEN EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) WHERE grantee = 0) THEN '' ELSE ', for roles that are granted it' END
           || coalesce(', ' || array_to_string(p.proconfig, ', '), '') AS properties,
           coalesce(p.proallargtypes, p.proargtypes::oid[]) AS types, p.proargnames AS names, p.proargmodes AS modes
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname IN ('daybook', 'queues') AND p.prorettype <> 'trigger'::regtype
), parameter AS MATERIALIZED (
    SELECT f.oid, f.name, a.n, coalesce(f.modes[a.n], 'i') AS mode, coalesce(nullif(f.names[a.n], ''), '$' || a.n) AS parameter, format_type(a.type, NULL) AS type
      FROM function f, unnest(f.types) WITH ORDINALITY AS a (type, n)
), out AS (
    SELECT oid, string_agg(parameter || ' ' || type, ', ' ORDER BY n) AS columns FROM parameter WHERE mode IN ('o', 'b') GROUP BY oid
)
SELECT format('%s.%I = %s', r.oid::regclass, a.attname, format_type(a.atttypid, a.atttypmod))
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
 WHERE r.relnamespace::regnamespace::text IN ('daybook', 'queues') AND r.relkind IN ('r', 'v', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT format('%s = %s%s, of %s or more parameters, %s', f.name, f.result, ' (' || out.columns || ')', f.must, f.properties)
  FROM function f LEFT JOIN out USING (oid)
UNION ALL
SELECT format('%s(%s) = %s %s%s%s', name, parameter, row_number() OVER (PARTITION BY oid ORDER BY n), CASE mode WHEN 'v' THEN 'VARIADIC ' ELSE '' END, type,
              ' DEFAULT ' || pg_get_function_arg_default(oid, n::integer))
  FROM parameter
 WHERE mode IN ('i', 'b', 'v')`

// Surface returns what statements find in the schema of a database: "thing = how it is". It sets
// the session's search path, so that each name is written with its schema.
func Surface(ctx context.Context, conn *pgx.Conn) ([]string, error) { return list(ctx, conn, surface) }

// rights lists what roles may do by a GRANT of their own, the owner apart.
const rights = `
SELECT format('%s of %s on %I.%I', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, n.nspname, p.proname)
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
 WHERE n.nspname IN ('daybook', 'queues', 'internal') AND a.grantee <> p.proowner
UNION
SELECT format('%s of %s on %s', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, r.oid::regclass)
  FROM pg_class r, aclexplode(r.relacl) a
 WHERE r.relnamespace::regnamespace::text IN ('daybook', 'queues') AND r.relkind IN ('r', 'v', 'p', 'S') AND a.grantee <> r.relowner
UNION
SELECT format('%s of %s on %s.%I', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, r.oid::regclass, c.attname)
  FROM pg_attribute c JOIN pg_class r ON r.oid = c.attrelid, aclexplode(c.attacl) a
 WHERE r.relnamespace::regnamespace::text IN ('daybook', 'queues') AND NOT c.attisdropped AND a.grantee <> r.relowner
UNION
SELECT format('%s of %s on schema %I', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, n.nspname)
  FROM pg_namespace n, aclexplode(n.nspacl) a
 WHERE n.nspname IN ('daybook', 'queues', 'internal') AND a.grantee <> n.nspowner
UNION
SELECT format('membership of %s in %s', m.member::regrole, m.roleid::regrole)
  FROM pg_auth_members m
 WHERE m.roleid::regrole::text ~ '^(daybook_|worker_service_user$)' AND m.member::regrole::text ~ '^daybook_'`

// Rights returns which rights roles have in a database: "INSERT of daybook_domain on
// daybook.documents", and which of Daybook's roles are members of others. It sets the session's
// search path.
func Rights(ctx context.Context, conn *pgx.Conn) ([]string, error) { return list(ctx, conn, rights) }

func list(ctx context.Context, conn *pgx.Conn, query string) ([]string, error) {
	if _, err := conn.Exec(ctx, `SET search_path = pg_catalog`); err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, query)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
