package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
)

// TestVerifyRoles: each kind of right that Roles gives is missed when it is gone.
func TestVerifyRoles(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	lacks := func() map[string][]string {
		list, err := migrations.VerifyRoles(t.Context(), db.Pool)
		require.NoError(t, err)
		all := map[string][]string{}
		for _, l := range list {
			all[l.Role] = l.Rights
		}
		return all
	}
	assert.Empty(t, lacks(), "the roles are not used in this database")
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	assert.Empty(t, lacks())
	_, err := db.Pool.Exec(t.Context(), `
REVOKE UPDATE ON daybook.jobs FROM daybook_worker; REVOKE USAGE ON SEQUENCE daybook.fence_seq FROM daybook_worker; REVOKE UPDATE ON daybook.attempt_log FROM daybook_worker;
REVOKE SELECT ON daybook.documents FROM daybook_reader; REVOKE EXECUTE ON FUNCTION queues.enqueue FROM daybook_domain, PUBLIC; REVOKE USAGE ON SCHEMA queues FROM daybook_reader;
REVOKE SELECT (name) ON daybook.api_tokens FROM daybook_reader`)
	require.NoError(t, err)
	have := lacks()
	assert.Equal(t, []string{"SELECT on daybook.documents", "USAGE on queues"}, have["daybook_reader"],
		"columns are looked at as one")
	assert.Equal(t, []string{"EXECUTE on queues.enqueue"}, have["daybook_domain"])
	assert.Equal(t, []string{"UPDATE on daybook.attempt_log", "UPDATE on daybook.jobs", "USAGE on daybook.fence_seq"},
		have["daybook_worker"])
}
