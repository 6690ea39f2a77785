package migrations_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// use is something that bodies of functions may use, which is part of what Of names, if that is not
// empty. A body that uses it has In and Word as words.
type use struct{ Of, Thing, In, Word string }

func uses(t *testing.T, conn *pgx.Conn) []use {
	t.Helper()
	rows, _ := conn.Query(t.Context(), usedInBodies)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[use])
	require.NoError(t, err)
	return list
}

// misfits are the functions that PostgreSQL would not make as they are any more: because of anything
// in SQL, and because of the types of variables in PL/pgSQL.
func misfits(t *testing.T, conn *pgx.Conn) (found []string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), misfit)
	require.NoError(t, err)
	for _, e := range details(t, conn, functionsThatDoNotFit) {
		found = append(found, fmt.Sprintf("leaves %s, whose body does not fit the schema: %s", e.Thing, e.Text))
	}
	return found
}

// named are the names of what is gone that functions in PL/pgSQL have still. PostgreSQL reads the
// statements of those when they run, so their words are looked at: a body may mean another thing of
// the name.
func named(t *testing.T, conn *pgx.Conn, before, after schema) map[string]string {
	t.Helper()
	left := after.things()
	bodies, problems := details(t, conn, plpgsqlBodies), map[string]string{}
	for _, e := range before.uses {
		if left[e.Thing] || e.Of != "" && !left[e.Of] {
			continue
		}
		in, word := wholeWord(e.In), wholeWord(e.Word)
		for _, body := range bodies {
			if body.Thing != e.Of && in.MatchString(body.Text) && word.MatchString(body.Text) {
				problems[e.Thing+" in "+body.Thing] = "is named there, and is gone"
			}
		}
	}
	return problems
}

func wholeWord(name string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
}

const ofOwnFunctions = `pronamespace::regnamespace::text IN ('daybook', 'queues', 'internal')`

// A function is used with some number of arguments, and with names and types of each. Columns of a
// table are used where the table is named, where a function is called that returns its rows, and in
// functions of its triggers, each of which has its own name in the statement that makes it.
const usedInBodies = `
WITH function AS MATERIALIZED (
    SELECT format('%s.%I', p.pronamespace::regnamespace, p.proname) AS name, p.* FROM pg_proc p WHERE p.` + ofOwnFunctions + `
), argument AS MATERIALIZED (
    SELECT f.name AS of, coalesce(f.proargmodes[a.n], 'i') IN ('i', 'b', 'v') AS taken, f.proargnames[a.n] AS name, format_type(a.type, NULL) AS type
      FROM function f, unnest(coalesce(f.proallargtypes, f.proargtypes::oid[])) WITH ORDINALITY AS a (type, n)
), relation AS MATERIALIZED (
    SELECT r.oid, r.oid::regclass::text AS name, r.reltype FROM pg_class r WHERE r.` + ofDaybook + ` AND r.relkind IN ('r', 'v', 'p', 'c', 'S')
), whole AS (
    SELECT name FROM relation UNION SELECT name FROM function
    UNION SELECT t.oid::regtype::text FROM pg_type t WHERE t.typnamespace::regnamespace::text IN ('daybook', 'queues') AND t.typtype IN ('e', 'd')
), place AS (
    SELECT oid, name FROM relation
    UNION SELECT r.oid, f.name FROM relation r JOIN function f ON f.prorettype = r.reltype
    UNION SELECT t.tgrelid, f.name FROM pg_trigger t JOIN function f ON f.oid = t.tgfoid WHERE NOT t.tgisinternal
)
SELECT '', name, name, name FROM whole
UNION ALL
SELECT name, format('%s of %s parameters', name, n), name, name FROM function, generate_series((pronargs - pronargdefaults)::integer, pronargs) AS n
UNION ALL
SELECT of, format('%s(%s)', of, concat_ws(' ', name, type)), of, of FROM argument WHERE taken
UNION ALL
SELECT of, format('%s.%I', of, name), of, name FROM argument WHERE NOT taken
UNION ALL
SELECT r.name, format('%s.%I', r.name, a.attname), place.name, a.attname
  FROM relation r JOIN place USING (oid) JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped`

const plpgsqlBodies = `
SELECT '', format('%s.%I', p.pronamespace::regnamespace, p.proname), regexp_replace(pg_get_functiondef(p.oid), '--[^\n]*', '', 'g')
  FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
 WHERE p.` + ofOwnFunctions

// misfit calls what PostgreSQL itself calls when it makes a function, and says what that refuses.
const misfit = `
CREATE FUNCTION pg_temp.misfit(validator oid, function oid) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT %s(%s)', validator::regproc, function);
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END
$$`

const functionsThatDoNotFit = `
SELECT '', oid::regprocedure::text, problem
  FROM (SELECT p.oid, pg_temp.misfit(l.lanvalidator, p.oid) AS problem
          FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang AND l.lanname IN ('sql', 'plpgsql')
         WHERE p.` + ofOwnFunctions + `) f
 WHERE problem IS NOT NULL`
