package migrations_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/migrations"
)

// TestLaterMigrations: each migration that follows the newest release can be applied beside its
// workers, and leaves its programs what they use.
func TestLaterMigrations(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	paths, err := filepath.Glob("0*.sql")
	require.NoError(t, err)
	require.Greater(t, len(paths), released.Schema-1)
	for i, path := range paths {
		if i < released.Schema {
			require.NoError(t, migrations.UpByOne(t.Context(), db.URL))
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Empty(t, problems(t, db, string(text)), "%s", path)
	}
}

// What a migration of these would do to workers is found.
func TestProblemsOfMigrationsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ up, problem string }{
		"a nullable column":              {`ALTER TABLE daybook.jobs ADD COLUMN later text`, ""},
		"a column with a default":        {`ALTER TABLE daybook.jobs ADD COLUMN later int NOT NULL DEFAULT 0`, ""},
		"a check that is not valid yet":  {`ALTER TABLE daybook.jobs ADD CONSTRAINT later CHECK (org_id <> 'x') NOT VALID`, ""},
		"a table of its own":             {`CREATE TABLE daybook.later (id bigint PRIMARY KEY); CREATE INDEX later_id ON daybook.later (id)`, ""},
		"the same function, other body":  {`CREATE OR REPLACE FUNCTION daybook.later() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE OR REPLACE FUNCTION daybook.later() RETURNS int LANGUAGE sql AS 'SELECT 2'`, ""},
		"an index outside":               {"-- +goose NO TRANSACTION\nDROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nCREATE INDEX CONCURRENTLY later ON daybook.jobs (org_id)", ""},
		"a valid constraint outside":     {"-- +goose NO TRANSACTION\nALTER TABLE daybook.jobs VALIDATE CONSTRAINT jobs_later", ""},
		"an index":                       {`CREATE INDEX later ON daybook.jobs (org_id)`, "reads daybook.jobs while it holds ShareLock"},
		"an index that a try has left":   {"-- +goose NO TRANSACTION\nCREATE INDEX CONCURRENTLY IF NOT EXISTS later ON daybook.jobs (org_id)", "DROP INDEX CONCURRENTLY IF EXISTS"},
		"a lock outside":                 {"-- +goose NO TRANSACTION\nALTER TABLE daybook.jobs ADD COLUMN later text", "outside of a transaction"},
		"a table written anew":           {`ALTER TABLE daybook.jobs ADD COLUMN later uuid DEFAULT gen_random_uuid()`, "writes daybook.jobs anew"},
		"another type":                   {`ALTER TABLE daybook.accounts ALTER COLUMN name TYPE varchar(100)`, "takes away column daybook.accounts.name text"},
		"a constraint that is validated": {`ALTER TABLE daybook.jobs ADD CONSTRAINT later CHECK (org_id <> 'x')`, "reads daybook.jobs while it holds AccessExclusiveLock"},
		"a reference":                    {`CREATE TABLE daybook.later (id text PRIMARY KEY); ALTER TABLE daybook.jobs ADD FOREIGN KEY (org_id) REFERENCES daybook.later`, "reads daybook.jobs while it holds"},
		"rows that are moved":            {`ALTER TABLE daybook.jobs ADD COLUMN later text; UPDATE daybook.jobs SET later = org_id`, "reads daybook.jobs while it holds"},
		"a column gone":                  {`ALTER TABLE daybook.accounts DROP COLUMN name CASCADE`, "takes away column daybook.accounts.name"},
		"a column renamed":               {`ALTER TABLE daybook.accounts RENAME COLUMN name TO title`, "takes away column daybook.accounts.name"},
		"a statement that fails":         {"-- +daybook breaks\nALTER TABLE daybook.accounts RENAME COLUMN name TO title", "programs of the release before send"},
		"a column that must be given":    {`CREATE TABLE daybook.later (); DELETE FROM daybook.jobs; ALTER TABLE daybook.jobs ADD COLUMN later text NOT NULL`, "daybook.jobs.later must be given"},
		"a function's parameters": {
			`DROP FUNCTION daybook.mark_document_ready; CREATE FUNCTION daybook.mark_document_ready(id text) RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			"takes away function daybook.mark_document_ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			if strings.Contains(c.up, "jobs_later") {
				_, err := db.Pool.Exec(t.Context(), `ALTER TABLE daybook.jobs ADD CONSTRAINT jobs_later CHECK (org_id <> '') NOT VALID`)
				require.NoError(t, err)
			}
			found := problems(t, db, "-- +goose Up\n"+c.up+";\n-- +goose Down\n")
			if c.problem == "" {
				assert.Empty(t, found)
				return
			}
			assert.Contains(t, strings.Join(found, "\n"), c.problem)
		})
	}
}

// surface is what programs find in the schema: columns with their types, and functions with their
// parameters and results.
const surface = `
SELECT 'column ' || r.oid::regclass || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
 WHERE r.relnamespace::regnamespace::text IN ('daybook', 'queues') AND r.relkind IN ('r', 'v', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT format('function %s %s', p.oid::regprocedure, pg_get_function_result(p.oid))
  FROM pg_proc p
 WHERE p.pronamespace::regnamespace::text IN ('daybook', 'queues')`

// problems applies a migration and says what workers beside it, or programs of the release before,
// would suffer.
func problems(t *testing.T, db *pgtest.DB, text string) []string {
	t.Helper()
	up, _, _ := strings.Cut(text, "-- +goose Down")
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `SET search_path = pg_catalog`) // names are printed with their schema
	require.NoError(t, err)
	before := texts(t, conn, surface)
	var found []string
	if strings.Contains(text, "-- +goose NO TRANSACTION") {
		found = outside(t, conn, up)
	} else {
		found = inside(t, conn, up)
	}
	after := texts(t, conn, surface)
	if !strings.Contains(text, "\n-- +daybook breaks\n") {
		for thing := range before {
			if !after[thing] {
				found = append(found, "takes away "+thing)
			}
		}
	}
	const given = `
SELECT r.oid::regclass || '.' || a.attname
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
 WHERE r.relnamespace::regnamespace::text IN ('daybook', 'queues') AND r.relkind = 'r' AND a.attnum > 0
   AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = ''`
	for column := range texts(t, conn, given) {
		table := column[:strings.LastIndex(column, ".")]
		known, isNew := false, true
		for thing := range before {
			known = known || strings.HasPrefix(thing, "column "+table+".")
			isNew = isNew && !strings.HasPrefix(thing, "column "+column+" ")
		}
		if known && isNew {
			found = append(found, column+" must be given, which programs of the release before do not do")
		}
	}
	kept, err := os.ReadFile(released.Path("..", "statements.sql"))
	require.NoError(t, err)
	for statement := range strings.SplitSeq(string(kept), "\n;\n") {
		if _, err := conn.Prepare(t.Context(), "", statement); err != nil {
			found = append(found, fmt.Sprintf("programs of the release before send %q: %v", statement, err))
		}
	}
	return found
}

// inside applies a migration that is a transaction. What it holds a strong lock on it may not read,
// as then the lock lasts for as long as the table is large.
func inside(t *testing.T, conn *pgx.Conn, up string) []string {
	t.Helper()
	const files = `SELECT oid::regclass || ' ' || relfilenode FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text IN ('daybook', 'queues')`
	before := texts(t, conn, files)
	known := texts(t, conn, `SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r'`)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = conn.PgConn().Exec(t.Context(), up).ReadAll()
	require.NoError(t, err)
	var found []string
	after := texts(t, conn, files)
	for file := range before {
		if table, _, _ := strings.Cut(file, " "); !after[file] {
			found = append(found, "writes "+table+" anew")
		}
	}
	const locked = `
SELECT DISTINCT l.relation::regclass || ' while it holds ' || l.mode
  FROM pg_locks l JOIN pg_stat_xact_all_tables s ON s.relid = l.relation
 WHERE l.pid = pg_backend_pid() AND l.mode IN ('RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
   AND coalesce(s.seq_scan, 0) + coalesce(s.idx_scan, 0) > 0`
	for table := range texts(t, conn, locked) {
		if name, _, _ := strings.Cut(table, " "); known[name] && !strings.HasPrefix(name, "pg_") {
			found = append(found, "reads "+table+": the lock lasts as long as the table is large")
		}
	}
	require.NoError(t, tx.Commit(t.Context()))
	return found
}

// outside applies a migration that is none: only what takes no strong lock may be in it, and an
// index that a try has left half done is dropped before it is made.
func outside(t *testing.T, conn *pgx.Conn, up string) []string {
	t.Helper()
	var found []string
	for statement := range strings.SplitSeq(up, ";") {
		var lines []string
		for line := range strings.SplitSeq(statement, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		words := strings.Fields(strings.Join(lines, " "))
		if len(words) == 0 {
			continue
		}
		plain := strings.Join(words, " ")
		switch {
		case strings.HasPrefix(plain, "DROP INDEX CONCURRENTLY IF EXISTS "):
		case strings.HasPrefix(plain, "CREATE INDEX CONCURRENTLY ") || strings.HasPrefix(plain, "CREATE UNIQUE INDEX CONCURRENTLY "):
			name := words[3]
			if words[1] == "UNIQUE" {
				name = words[4]
			}
			if !strings.Contains(up, "DROP INDEX CONCURRENTLY IF EXISTS daybook."+name+";") {
				found = append(found, "wants DROP INDEX CONCURRENTLY IF EXISTS daybook."+name+" first: a try that failed leaves an index that is not valid")
			}
		case strings.HasPrefix(plain, "ALTER TABLE ") && strings.Contains(plain, " VALIDATE CONSTRAINT "):
		default:
			found = append(found, "may not be outside of a transaction: "+plain)
		}
		_, err := conn.Exec(t.Context(), plain)
		require.NoError(t, err)
	}
	return found
}

func texts(t *testing.T, conn *pgx.Conn, query string) map[string]bool {
	t.Helper()
	rows, _ := conn.Query(t.Context(), query)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	set := map[string]bool{}
	for _, text := range list {
		set[text] = true
	}
	return set
}
