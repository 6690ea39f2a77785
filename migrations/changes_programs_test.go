package migrations_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	// guarded are the constraints, indexes, triggers and row security of tables, with their definitions.
	guarded []detail
	// bodies are those of functions by which rows are indexed, checked or generated.
	bodies []detail
	// rights are what roles may do.
	rights map[string]bool
	// functions are there, and how many have the name.
	functions []detail
	// uses are what bodies of functions may name.
	uses []use
}

// detail is a thing of the schema. In is the table that it belongs to, or the object.
type detail struct{ In, Thing, Text string }

func look(t *testing.T, conn *pgx.Conn) schema {
	t.Helper()
	surface, err := released.Surface(t.Context(), conn)
	require.NoError(t, err)
	rights, err := released.Rights(t.Context(), conn)
	require.NoError(t, err)
	s := schema{
		surface: map[string]bool{}, tables: texts(t, conn, ownTables),
		given: details(t, conn, mustBeGiven), guarded: details(t, conn, guardsOfTables),
		bodies: details(t, conn, bodiesOfRows), rights: map[string]bool{}, functions: details(t, conn, functionNames), uses: uses(t, conn),
	}
	for _, line := range surface {
		s.surface[line] = true
	}
	for _, right := range rights {
		s.rights[right] = true
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

// things are the names of what is there: tables and their like, columns, and functions.
func (s schema) things() map[string]bool {
	names := map[string]bool{}
	for _, e := range s.uses {
		names[e.Thing] = true
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
	bodies := byThing(after.bodies)
	for _, e := range before.bodies {
		if text, is := bodies[e.Thing]; is && text != e.Text {
			found = append(found, "changes "+e.Thing+", by which rows are indexed, checked or generated: those that are there keep what the old one said")
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

// otherRights are those that roles have no more, but for those on what is gone, and those that every
// role got on a function that was there.
func otherRights(before, after schema) (found []string) {
	had, has := before.things(), after.things()
	for right := range before.rights {
		if on := objectOf(right); !after.rights[right] && (has[on] || !had[on]) {
			found = append(found, "takes away "+right)
		}
	}
	for right := range after.rights {
		if !before.rights[right] && had[objectOf(right)] && strings.HasPrefix(right, "EXECUTE of PUBLIC ") {
			found = append(found, "gives "+right)
		}
	}
	return found
}

// objectOf is what a right is on.
func objectOf(right string) string {
	_, object, _ := strings.Cut(right, " on ")
	return object
}

// guards are the constraints, indexes, triggers and columns that may be safe to change: the problem
// of each.
func guards(before, after schema) map[string]string {
	changes := map[string]string{}
	had, has := byThing(before.guarded), byThing(after.guarded)
	for _, e := range before.guarded {
		referenced := strings.HasPrefix(e.Thing, "constraint ") && !strings.HasSuffix(e.Thing, " of "+e.In)
		if text := has[e.Thing]; text != e.Text && after.tables[e.In] && !referenced {
			changes[e.Thing] = "is not there as it was"
		}
	}
	for _, e := range after.guarded {
		if _, is := had[e.Thing]; !is && before.tables[e.In] && (!strings.HasPrefix(e.Thing, "index ") || strings.HasPrefix(e.Text, "CREATE UNIQUE")) {
			changes[e.Thing] = "is new, and may refuse what programs of the release before do"
		}
	}
	given, known := byThing(before.given), before.things()
	for _, e := range after.given {
		if _, is := given[e.Thing]; !is && known[e.Thing] {
			changes[e.Thing] = "must be given now"
		}
	}
	return changes
}

const ofDaybook = `relnamespace::regnamespace::text IN ('daybook', 'queues')`

const mustBeGiven = `
SELECT r.oid::regclass::text, format('%s.%I', r.oid::regclass, a.attname), ''
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
 WHERE r.` + ofDaybook + ` AND r.relkind = 'r' AND a.attnum > 0 AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = ''`

// A reference belongs to the table whose rows it may keep from being deleted, too.
const guardsOfTables = `
SELECT r.oid::regclass::text, format('constraint %I of %s', c.conname, c.conrelid::regclass), regexp_replace(pg_get_constraintdef(c.oid), ' NOT VALID$', '')
  FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid OR r.oid = c.confrelid AND c.confdeltype IN ('a', 'r')
 WHERE r.` + ofDaybook + ` AND c.contype IN ('p', 'u', 'f', 'c', 'x')
UNION ALL
SELECT r.oid::regclass::text, 'index ' || x.indexrelid::regclass, pg_get_indexdef(x.indexrelid)
  FROM pg_index x JOIN pg_class r ON r.oid = x.indrelid
 WHERE r.` + ofDaybook + ` AND r.relkind = 'r' AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = x.indexrelid AND c.contype IN ('p', 'u', 'x'))
UNION ALL
SELECT r.oid::regclass::text, format('trigger %I of %s', t.tgname, r.oid::regclass), pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
  FROM pg_trigger t JOIN pg_class r ON r.oid = t.tgrelid
 WHERE r.` + ofDaybook + ` AND NOT t.tgisinternal
UNION ALL
SELECT r.oid::regclass::text, 'row security of ' || r.oid::regclass, 'forced ' || r.relforcerowsecurity
  FROM pg_class r
 WHERE r.` + ofDaybook + ` AND r.relrowsecurity`

// The functions of indexes, constraints and generated columns, and those that they call.
const bodiesOfRows = `
WITH RECURSIVE own AS (
    SELECT oid, proname, coalesce(pg_get_function_sqlbody(oid), prosrc) AS body FROM pg_proc WHERE pronamespace::regnamespace::text IN ('daybook', 'queues', 'internal')
), tied AS (
    SELECT own.* FROM own JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = own.oid
     WHERE d.classid = 'pg_constraint'::regclass
        OR d.classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_index x WHERE x.indexrelid = d.objid)
        OR d.classid = 'pg_attrdef'::regclass AND EXISTS (
               SELECT FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE f.oid = d.objid AND a.attgenerated <> '')
    UNION
    SELECT own.* FROM tied JOIN own ON tied.body ~ ('\m' || own.proname || '\s*\(')
)
SELECT '', 'the body of ' || oid::regprocedure, body FROM tied`

const functionNames = `
SELECT '', format('%I.%I', n.nspname, p.proname), count(*)::text
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname IN ('daybook', 'queues')
 GROUP BY n.nspname, p.proname`

// mayNot is the refusal of statements that need a role's right: of rights see otherRights.
const mayNot = "42501"

// refused are the statements of the release's programs that PostgreSQL does not plan any more. A
// generic plan is for any argument.
func refused(t *testing.T, conn *pgx.Conn) (found []string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), `SET plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	kept, err := os.ReadFile(released.Path("..", "statements.sql"))
	require.NoError(t, err)
	for n, statement := range strings.Split(string(kept), "\n;\n") {
		name := fmt.Sprint("released_", n)
		prepared, err := conn.PgConn().Prepare(t.Context(), name, statement, nil)
		if err == nil {
			explain := "EXPLAIN EXECUTE " + name
			if of := len(prepared.ParamOIDs); of > 0 {
				explain += "(NULL" + strings.Repeat(", NULL", of-1) + ")"
			}
			_, err = conn.PgConn().Exec(t.Context(), explain).ReadAll()
		}
		if refusal, is := errors.AsType[*pgconn.PgError](err); err != nil && (!is || refusal.Code != mayNot) {
			found = append(found, fmt.Sprintf("programs of the release before send %q: %v", statement, err))
		}
	}
	return found
}
