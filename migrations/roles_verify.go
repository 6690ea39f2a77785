package migrations

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// RoleLacks is one of Daybook's roles that lacks rights which Roles gives it.
type RoleLacks struct {
	Role string
	// Rights are those that it lacks, as "UPDATE on daybook.jobs".
	Rights []string
	// Connected: a session of this database is logged in as the role.
	Connected bool
}

// VerifyRoles lists those of Daybook's roles that lack rights which Roles gives them, because they
// were revoked, or because the schema was migrated without giving them anew. A role that has no
// right on Daybook's tables is not used in this database, and is left out. Rights on single columns
// are looked at as one.
func VerifyRoles(ctx context.Context, db Querier) ([]RoleLacks, error) {
	const stmt = `
WITH roles AS MATERIALIZED (
    SELECT r.oid, r.rolname::text AS name
      FROM pg_catalog.pg_roles r
     WHERE r.rolname = ANY ($1)
       AND EXISTS (SELECT FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
                    WHERE c.relnamespace = to_regnamespace('daybook') AND a.grantee = r.oid)
), given AS MATERIALIZED (
    SELECT r.oid, r.name, g.privilege, g.what, o.object
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS g (role, privilege, what, object)
      JOIN roles r ON r.name = g.role
     CROSS JOIN LATERAL (
           SELECT g.object WHERE g.what <> 'tables'
           UNION ALL
           SELECT g.object || '.' || c.relname
             FROM pg_catalog.pg_class c
            WHERE g.what = 'tables' AND c.relnamespace = to_regnamespace(g.object) AND c.relkind IN ('r', 'v')
              AND NOT (g.role || ' ' || g.privilege || ' ' || g.object || '.' || c.relname = ANY ($5))) o (object)
), lacks AS (
    SELECT g.oid, g.name, g.privilege || ' on ' || g.object AS lack
      FROM given g
     WHERE CASE g.what
           WHEN 'schema' THEN NOT has_schema_privilege(g.oid, g.object, g.privilege)
           WHEN 'sequence' THEN NOT has_sequence_privilege(g.oid, to_regclass(g.object), g.privilege)
           WHEN 'function' THEN EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                                         WHERE n.nspname || '.' || p.proname = g.object AND NOT has_function_privilege(g.oid, p.oid, g.privilege))
           ELSE NOT has_table_privilege(g.oid, to_regclass(g.object), g.privilege)
                AND CASE WHEN g.privilege = 'DELETE' THEN true ELSE NOT has_any_column_privilege(g.oid, to_regclass(g.object), g.privilege) END
           END
)
SELECT l.name, array_agg(DISTINCT l.lack ORDER BY l.lack), EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.usesysid = l.oid AND a.datname = current_database())
  FROM lacks l
 GROUP BY l.oid, l.name
 ORDER BY l.name`
	given, except := grants(rolesSQL)
	n := len(given)
	roles, privileges, whats, objects := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, g := range given {
		roles[i], privileges[i], whats[i], objects[i] = g.role, g.privilege, g.what, g.object
	}
	rows, err := db.Query(ctx, stmt, roles, privileges, whats, objects, except)
	if err != nil {
		return nil, fmt.Errorf("read the roles' rights: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RoleLacks])
	if err != nil {
		return nil, fmt.Errorf("read the roles' rights: %w", err)
	}
	return list, nil
}

// grant is a right that a statement of roles/roles.sql gives. What is table, tables (all of a
// schema), schema, sequence or function.
type grant struct{ role, privilege, what, object string }

var (
	comment   = regexp.MustCompile(`(?m)--.*$`)
	granted   = regexp.MustCompile(`(?is)^(GRANT|REVOKE) (.+?) ON (?:(ALL TABLES IN SCHEMA|ALL SEQUENCES IN SCHEMA|SCHEMA|SEQUENCE|FUNCTION) )?(.+?) (?:TO|FROM) (.+)$`)
	ofColumns = regexp.MustCompile(`\s*\([^)]*\)`)
)

// grants reads which rights a script gives, and which of those on all tables of a schema it takes
// back, as "role privilege table".
func grants(script string) (given []grant, except []string) {
	for statement := range strings.SplitSeq(comment.ReplaceAllString(script, ""), ";") {
		m := granted.FindStringSubmatch(strings.Join(strings.Fields(statement), " "))
		if m == nil || m[2] == "ALL" {
			continue
		}
		for role := range strings.SplitSeq(m[5], ", ") {
			for privilege := range strings.SplitSeq(ofColumns.ReplaceAllString(m[2], ""), ", ") {
				for object := range strings.SplitSeq(m[4], ", ") {
					g := grant{role, privilege, whatOf(m[3]), object}
					one := role + " " + privilege + " " + object
					if m[1] == "REVOKE" {
						except = append(except, one)
						continue
					}
					given = append(given, g)
				}
			}
		}
	}
	return given, slices.Compact(except)
}

// whatOf names what a right is on by the words before it.
func whatOf(words string) string {
	switch words {
	case "":
		return "table"
	case "ALL TABLES IN SCHEMA":
		return "tables"
	default:
		return strings.ToLower(words)
	}
}
