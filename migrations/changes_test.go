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
