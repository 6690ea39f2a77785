package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
)

func change(t *testing.T, db *pgtest.DB, stmt string) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), stmt)
	require.NoError(t, err)
}

// Migrations are edited in place before the first release: a database that older texts made is told
// from one of this build.
func TestOtherTextsAreNoticed(t *testing.T) {
	t.Parallel()
	for name, stmt := range map[string]string{
		"another text":        `UPDATE daybook.schema_texts SET sha256 = repeat('0', 64) WHERE version = 3`,
		"no texts noted":      `DROP TABLE daybook.schema_texts`,
		"a text is not noted": `DELETE FROM daybook.schema_texts WHERE version = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			change(t, db, stmt)
			assert.Error(t, migrations.Verify(t.Context(), db.Pool))
			err := migrations.Up(t.Context(), db.URL)
			require.ErrorIs(t, err, migrations.ErrDifferent)
			assert.ErrorContains(t, err, "make the database anew")
		})
	}
	db := pgtest.New(t)
	change(t, db, `UPDATE daybook.schema_texts SET sha256 = repeat('0', 64) WHERE version = 3`)
	err := migrations.Verify(t.Context(), db.Pool)
	require.ErrorIs(t, err, migrations.ErrDifferent)
	assert.ErrorContains(t, err, "migration 3")
	assert.True(t, migrations.Wrong(err))
}

// A restore makes constraints, indexes and triggers last: while one is missing, rows may be missing
// as well.
func TestIncompleteSchemaIsNoticed(t *testing.T) {
	t.Parallel()
	for name, stmt := range map[string]string{
		"constraint": `ALTER TABLE daybook.confirmations DROP CONSTRAINT confirmations_impact_id_fkey`,
		"index":      `DROP INDEX daybook.impacts_date`,
		"trigger":    `DROP TRIGGER impacts_append_only ON daybook.impacts`,
		"rows":       `DELETE FROM daybook.schema_texts WHERE version = 2`,

		"constraint of tasks": `ALTER TABLE queues.task DROP CONSTRAINT task_payload_is_object`,
		"index of tasks":      `DROP INDEX queues.task_lease_task`,
		"trigger of tasks":    `DROP TRIGGER error_append_only ON queues.error`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			change(t, db, stmt)
			err := migrations.Verify(t.Context(), db.Pool)
			require.ErrorIs(t, err, migrations.ErrIncomplete)
			assert.False(t, migrations.Wrong(err), "waiting may mend it")
		})
	}
}

// What an application adds to Daybook's tables is its own.
func TestAdditionsAreNoDifference(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	change(t, db, `CREATE INDEX of_the_application ON daybook.documents (type)`)
	change(t, db, `CREATE TABLE queues.of_the_application (id bigint PRIMARY KEY)`)
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
	require.NoError(t, migrations.Up(t.Context(), db.URL))
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
}

// A migration notes what it has added, and not what an application has on Daybook's tables
// meanwhile: that may go again.
func TestAdditionsAreNotNoted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, stmt := range []string{
		`CREATE INDEX of_the_application ON daybook.documents (type)`,
		`ALTER TABLE daybook.documents ADD CONSTRAINT of_the_application CHECK (type <> 'x')`,
		`CREATE FUNCTION public.captured() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		`CREATE TRIGGER of_the_application AFTER INSERT ON daybook.documents FOR EACH ROW EXECUTE FUNCTION public.captured()`,
	} {
		change(t, db, stmt)
	}
	newer := migrations.Shipped(map[string]string{
		"00098_later.sql": "-- +goose Up\nALTER TABLE daybook.jobs ADD COLUMN later text CONSTRAINT later_is_set CHECK (later <> '');\n",
		"00099_later.sql": `-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS daybook.imports_actor;
CREATE INDEX CONCURRENTLY imports_actor ON daybook.imports (actor);
DROP INDEX CONCURRENTLY IF EXISTS daybook.imports_later;
CREATE UNIQUE INDEX CONCURRENTLY imports_later ON daybook.imports (org_id);
`,
	})
	const imports = `INSERT INTO daybook.imports (org_id, format, actor) VALUES ('acme', 'csv', 'a'), ('acme', 'csv', 'a')`
	change(t, db, `INSERT INTO daybook.organizations (id) VALUES ('acme')`)
	change(t, db, imports)
	require.Error(t, newer.Up(t.Context(), db.URL), "leaves an index that is not valid")
	change(t, db, `DELETE FROM daybook.imports`)
	require.NoError(t, newer.Up(t.Context(), db.URL))
	for _, stmt := range []string{
		`DROP INDEX daybook.of_the_application`, `ALTER TABLE daybook.documents DROP CONSTRAINT of_the_application`,
		`DROP TRIGGER of_the_application ON daybook.documents`,
	} {
		change(t, db, stmt)
	}
	require.NoError(t, newer.Verify(t.Context(), db.Pool))
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))

	for added, stmt := range map[string]string{
		"later_is_set":  `ALTER TABLE daybook.jobs DROP CONSTRAINT later_is_set`,
		"imports_later": `DROP INDEX daybook.imports_later`,
		"imports_actor": `DROP INDEX daybook.imports_actor`, // the first try made it whole
		"impacts_date":  `DROP INDEX daybook.impacts_date`,
	} {
		tx, err := db.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), stmt)
		require.NoError(t, err)
		assert.ErrorContains(t, migrations.Verify(t.Context(), tx), added)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// What a migration made is noted by the next run when its own ended before it did that.
func TestInterruptedNotes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first := map[string]string{
		"00098_later.sql": "-- +goose Up\nALTER TABLE daybook.jobs ADD COLUMN later text CHECK (later <> '');\n",
	}
	require.NoError(t, migrations.Shipped(first).Up(t.Context(), db.URL))
	change(t, db, `UPDATE daybook.schema_texts SET objects = NULL WHERE version = 98`)
	first["00099_later.sql"] = "-- +goose Up\nALTER TABLE daybook.jobs ADD COLUMN latest text;\n"
	require.NoError(t, migrations.Shipped(first).Up(t.Context(), db.URL))
	change(t, db, `ALTER TABLE daybook.jobs DROP CONSTRAINT jobs_later_check`)
	assert.ErrorContains(t, migrations.Shipped(first).Verify(t.Context(), db.Pool), "jobs_later_check")
}

// Each table that the migrations make in schema queues is looked for.
func TestTablesOfTasksAreNoted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var unknown []string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT coalesce(array_agg(c.relname::text), '{}') FROM pg_class c
 WHERE c.relnamespace = 'queues'::regnamespace AND c.relkind = 'r'
   AND 'constraint ' || c.relname || '.' || c.relname || '_pkey' <> ALL (SELECT unnest(objects) FROM daybook.schema_texts)`).Scan(&unknown))
	assert.Empty(t, unknown)
}
