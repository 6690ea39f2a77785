package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// schemas are the example's own.
const schemas = `ARRAY['supervisors', 'comms', 'files', 'accounts', 'learning', 'api']::regnamespace[]`

// What the worker may call is SECURITY DEFINER with a pinned search path, PUBLIC may call nothing,
// and no role but the owner has a right to a table.
func TestAccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const functions = `FROM pg_proc p WHERE p.pronamespace = ANY (` + schemas + `)`
	assert.Zero(t, b.count(`SELECT count(*) `+functions+` AND has_function_privilege('public', p.oid, 'EXECUTE')`))
	assert.Zero(t, b.count(`SELECT count(*) `+functions+
		` AND NOT coalesce(p.proconfig::text LIKE '%search_path=pg_catalog, pg_temp%', false)`))
	assert.Zero(t, b.count(`SELECT count(*) `+functions+
		` AND has_function_privilege('worker_service_user', p.oid, 'EXECUTE') AND NOT p.prosecdef`))
	assert.Equal(t, "accounts.account_anonymization_supervisor, accounts.account_deletion_supervisor, "+
		"accounts.perform_account_anonymization, "+
		"comms.get_email_payload, comms.get_sms_payload, comms.record_email_failure, comms.record_email_success, "+
		"comms.record_sms_failure, comms.record_sms_success, "+
		"comms.send_email_supervisor, comms.send_sms_supervisor, "+
		"files.file_deletion_supervisor, files.get_file_delete_payload, files.record_file_delete_failure, "+
		"files.record_file_delete_success",
		b.text(`SELECT string_agg(p.oid::regproc::text, ', ' ORDER BY p.oid::regproc::text COLLATE "C") `+functions+
			` AND has_function_privilege('worker_service_user', p.oid, 'EXECUTE')`))
	assert.Zero(t, b.count(`SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = ANY (`+schemas+
		`) AND a.grantee <> c.relowner`))
}

// A second migration does nothing.
func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrate(t.Context(), b.URL))
}

// TestProgram runs the program as its README says.
func TestProgram(t *testing.T) {
	db := pgtest.New(t)
	t.Setenv("DAYBOOK_DATABASE_URL", db.URL)
	require.NoError(t, run(t.Context()))
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM pg_proc WHERE oid = 'api.request_account_deletion'::regproc`))
}
