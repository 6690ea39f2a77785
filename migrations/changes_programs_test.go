package migrations_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/released"
)

// schema is what programs find in a database, and what there refuses their rows.
type schema struct {
	surface map[string]bool
	// tables are those that programs know.
	tables map[string]bool
	// given are the columns that a new row must give, with their tables.
	given []detail
	// rights are what roles may do, and with what.
	rights []detail
	// functions are there, and how many have the name.
	functions []detail
}

// detail is a thing of the schema. In is the table that it belongs to, or the object.
type detail struct{ In, Thing, Text string }

func look(t *testing.T, conn *pgx.Conn) schema {
	t.Helper()
	surface, err := released.Surface(t.Context(), conn)
	require.NoError(t, err)
	s := schema{
		surface: map[string]bool{}, tables: texts(t, conn, ownTables),
		given:  details(t, conn, mustBeGiven),
		rights: details(t, conn, rightsOfRoles), functions: details(t, conn, functionNames),
	}
	for _, line := range surface {
		s.surface[line] = true
	}
	return s
}

func details(t *testing.T, conn *pgx.Conn, query string) []detail {
	t.Helper()
	rows, _ := conn.Query(t.Context(), query)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[detail])
	require.NoError(t, err)
	return list
}

// byThing are the texts of the details.
func byThing(list []detail) map[string]string {
	m := map[string]string{}
	for _, e := range list {
		m[e.Thing] = e.Text
	}
	return m
}

// things are the names of what programs find: tables, and functions, columns and parameters.
func (s schema) things() map[string]bool {
	names := maps.Clone(s.tables)
	for line := range s.surface {
		name, _, _ := strings.Cut(line, " = ")
		names[name] = true
	}
	return names
}

// gone are the columns, functions and parameters that are not as they were, which a migration may do
// that says it breaks.
func gone(before, after schema) (found []string) {
	for line := range before.surface {
		if !after.surface[line] {
			found = append(found, "takes away "+line)
		}
	}
	return found
}

// missed is what programs would miss, or be refused, that neither their statements' plans show nor
// a reason makes good.
func missed(before, after schema) (found []string) {
	known := before.things()
	for _, e := range after.given {
		if before.tables[e.In] && !known[e.Thing] {
			found = append(found, e.Thing+" must be given, which programs of the release before do not do")
		}
	}
	count := byThing(before.functions)
	for _, e := range after.functions {
		if had, is := count[e.Thing]; is && had != e.Text {
			found = append(found, "makes another function of the name "+e.Thing+": a call that fits both fails")
		}
	}
	return append(found, otherRights(before, after)...)
}

// otherRights are those that roles have no more on what is there still, and those that every role got
// on a function that was there.
func otherRights(before, after schema) (found []string) {
	had, has := byThing(before.rights), byThing(after.rights)
	objects, left := before.things(), after.things()
	for _, e := range before.rights {
		if _, is := has[e.Thing]; !is && left[e.In] {
			found = append(found, "takes away "+e.Thing)
		}
	}
	for _, e := range after.rights {
		if _, is := had[e.Thing]; !is && objects[e.In] && strings.HasPrefix(e.Thing, "EXECUTE of PUBLIC ") {
			found = append(found, "gives "+e.Thing)
		}
	}
	return found
}

const ofDaybook = `relnamespace::regnamespace::text IN ('daybook', 'queues')`

const mustBeGiven = `
SELECT r.oid::regclass::text, format('%s.%I', r.oid::regclass, a.attname), ''
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
 WHERE r.` + ofDaybook + ` AND r.relkind = 'r' AND a.attnum > 0 AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = ''`

const rightsOfRoles = `
SELECT format('%I.%I', n.nspname, p.proname), format('%s of %s on %I.%I', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, n.nspname, p.proname), ''
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
 WHERE n.nspname IN ('daybook', 'queues', 'internal')
UNION ALL
SELECT r.oid::regclass::text, format('%s of %s on %s', a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, r.oid::regclass), ''
  FROM pg_class r, aclexplode(coalesce(r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", r.relowner))) a
 WHERE r.` + ofDaybook + ` AND r.relkind IN ('r', 'v', 'p', 'S')
UNION ALL
SELECT format('%s.%I', r.oid::regclass, c.attname), format('%s of %s on %s.%I', a.privilege_type, a.grantee::regrole, r.oid::regclass, c.attname), ''
  FROM pg_attribute c JOIN pg_class r ON r.oid = c.attrelid, aclexplode(c.attacl) a
 WHERE r.` + ofDaybook + ` AND NOT c.attisdropped`

const functionNames = `
SELECT '', format('%I.%I', n.nspname, p.proname), count(*)::text
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname IN ('daybook', 'queues')
 GROUP BY n.nspname, p.proname`

// refused are the statements of the release's programs that PostgreSQL does not prepare any more.
func refused(t *testing.T, conn *pgx.Conn) (found []string) {
	t.Helper()
	kept, err := os.ReadFile(released.Path("..", "statements.sql"))
	require.NoError(t, err)
	for statement := range strings.SplitSeq(string(kept), "\n;\n") {
		if _, err := conn.Prepare(t.Context(), "", statement); err != nil {
			found = append(found, fmt.Sprintf("programs of the release before send %q: %v", statement, err))
		}
	}
	return found
}
