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
func Surface(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	if _, err := conn.Exec(ctx, `SET search_path = pg_catalog`); err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, surface)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
