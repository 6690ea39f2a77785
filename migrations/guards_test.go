package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/migrations"
)

// audited audits a database.
func audited(t *testing.T, db *pgtest.DB) audit.Report {
	t.Helper()
	newest, err := migrations.Newest()
	require.NoError(t, err)
	report, err := audit.Run(t.Context(), db.Pool,
		audit.Options{Guards: audit.GuardsOf(migrations.Schema()), Newest: newest, Limit: 1000})
	require.NoError(t, err)
	return report
}

// findings are the details of what a check found.
func findings(checks []audit.CheckResult, kind string) (details []string) {
	for _, c := range checks {
		if c.Kind == kind {
			for _, f := range c.Findings {
				details = append(details, f.Detail)
			}
		}
	}
	return details
}

// missing audits a database and returns the findings of the check for guards.
func missing(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	return findings(audited(t, db).Checks, "missing_guard")
}

// TestGuardsAreThoseOfTheMigrations compares what is read from the dumped schema with a new
// database, both ways.
func TestGuardsAreThoseOfTheMigrations(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	assert.Empty(t, missing(t, db))
	var n int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
         WHERE c.relnamespace::regnamespace::text IN ('daybook', 'queues') AND c.relname <> 'schema_migrations' AND k.contype IN ('c', 'p', 'u', 'f', 'x'))
     + (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace::regnamespace::text IN ('daybook', 'queues') AND NOT t.tgisinternal)
     + (SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
         WHERE c.relnamespace::regnamespace::text IN ('daybook', 'queues') AND c.relname <> 'schema_migrations' AND i.indisunique
           AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')))`).Scan(&n))
	assert.Len(t, audit.GuardsOf(migrations.Schema()), n)
}

// TestGuardsAreReadInAnySession whose server writes definitions otherwise.
func TestGuardsAreReadInAnySession(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `ALTER DATABASE `+db.Name+` SET quote_all_identifiers = on`)
	require.NoError(t, err)
	db.Pool.Reset()
	assert.Empty(t, missing(t, db))
}

// TestGuardsMayBeStoredOtherwise: an operator who gives the pages of an index more room, or less,
// has changed no guard.
func TestGuardsMayBeStoredOtherwise(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
ALTER INDEX daybook.impacts_once SET (fillfactor = 70, deduplicate_items = off);
ALTER INDEX daybook.documents_pkey SET (fillfactor = 70);
ALTER INDEX daybook.accounting_work_queue_pkey RESET (fillfactor)`)
	require.NoError(t, err)
	assert.Empty(t, missing(t, db))
}

// TestAuditFindsMissingGuards damages the schema as a restore, or a person in a hurry, may leave
// it.
func TestAuditFindsMissingGuards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ damage, found string }{
		"a lost foreign key": {
			`ALTER TABLE daybook.confirmations DROP CONSTRAINT confirmations_impact_id_fkey`,
			"key confirmations_impact_id_fkey of daybook.confirmations is missing",
		},
		"a foreign key of another table": {
			`ALTER TABLE daybook.job_links DROP CONSTRAINT job_links_job_id_fkey, ADD CONSTRAINT job_links_job_id_fkey FOREIGN KEY (job_id) REFERENCES daybook.jobs`,
			`key job_links_job_id_fkey of daybook.job_links is "FOREIGN KEY (job_id) REFERENCES daybook.jobs(id)", and was made as "FOREIGN KEY (job_id) REFERENCES daybook.jobs(id) ON DELETE CASCADE"`,
		},
		"one that is not validated": {
			`ALTER TABLE daybook.impacts DROP CONSTRAINT chain_alternates; ALTER TABLE daybook.impacts ADD CONSTRAINT chain_alternates CHECK ((kind = 'post') = (seq % 2 = 1)) NOT VALID`,
			"check constraint chain_alternates of daybook.impacts is not validated: rows that were there before may break it",
		},
		"a disabled trigger": {
			`ALTER TABLE daybook.entries DISABLE TRIGGER entries_check`,
			"trigger entries_check of daybook.entries is disabled",
		},
		"a lost unique index": {
			`DROP INDEX daybook.impacts_once`,
			"unique index impacts_once of daybook.impacts is missing",
		},
		"a disabled trigger of tasks' facts": {
			`ALTER TABLE queues.task_lease DISABLE TRIGGER task_lease_append_only`,
			"trigger task_lease_append_only of queues.task_lease is disabled",
		},
		"a lost trigger of tasks' facts": {
			`DROP TRIGGER error_append_only ON queues.error`,
			"trigger error_append_only of queues.error is missing",
		},
		"a lost key of tasks": {
			`ALTER TABLE queues.open_task DROP CONSTRAINT open_task_pkey`,
			"key open_task_pkey of queues.open_task is missing",
		},
		"a lost check of tasks": {
			`ALTER TABLE queues.task DROP CONSTRAINT task_payload_is_object`,
			"check constraint task_payload_is_object of queues.task is missing",
		},
		"a lost trigger": {
			`DROP TRIGGER impacts_append_only ON daybook.impacts`,
			"trigger impacts_append_only of daybook.impacts is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			_, err := db.Pool.Exec(t.Context(), c.damage)
			require.NoError(t, err)
			assert.Equal(t, []string{c.found}, missing(t, db))
		})
	}
}

// TestGuardsOfANewerProgram: what a newer program took away or made otherwise is nothing that is
// wrong. What is lost otherwise is.
func TestGuardsOfANewerProgram(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Shipped(map[string]string{"00099_later.sql": `-- +goose Up
DROP INDEX daybook.impacts_once;
ALTER TABLE daybook.impacts DROP CONSTRAINT chain_alternates;
ALTER TABLE daybook.job_links DROP CONSTRAINT job_links_job_id_fkey, ADD CONSTRAINT job_links_job_id_fkey FOREIGN KEY (job_id) REFERENCES daybook.jobs;
`}).Up(t.Context(), db.URL))
	report := audited(t, db)
	assert.Zero(t, report.Wrong())
	changed := findings(report.Warnings, "guard_of_newer_program")
	assert.Len(t, changed, 3)
	assert.Contains(t, changed, "unique index impacts_once of daybook.impacts is missing")

	change(t, db, `ALTER TABLE daybook.confirmations DROP CONSTRAINT confirmations_impact_id_fkey`)
	change(t, db, `ALTER TABLE daybook.entries DISABLE TRIGGER entries_check`)
	assert.ElementsMatch(t, []string{
		"key confirmations_impact_id_fkey of daybook.confirmations is missing",
		"trigger entries_check of daybook.entries is disabled",
	}, missing(t, db))
}
