package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
)

// TestARevokedTokenStaysRevoked: who may revoke a token cannot bring it back, nor can the owner.
func TestARevokedTokenStaysRevoked(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO daybook.api_tokens (id, name, scopes, hash) VALUES ('t', 'n', '{read}', sha256('1'))`)
	require.NoError(t, err)
	server := as(t, db, "daybook_server")
	_, err = server.Exec(t.Context(), `UPDATE daybook.api_tokens SET revoked_at = now()`)
	require.NoError(t, err)
	for name, pool := range map[string]*pgxpool.Pool{
		"the owner": db.Pool, "the server": server, "an operator": as(t, db, "daybook_operator"),
	} {
		for _, at := range []string{"NULL", "now() + interval '1 day'"} {
			_, err := pool.Exec(t.Context(), `UPDATE daybook.api_tokens SET revoked_at = `+at)
			assert.Equal(t, "DB004", store.SQLState(err), "%s sets it to %s", name, at)
		}
		_, err := pool.Exec(t.Context(), `UPDATE daybook.api_tokens SET revoked_at = revoked_at`)
		assert.NoError(t, err, "%s revokes it again", name)
	}
	_, err = server.Exec(t.Context(), `UPDATE daybook.api_tokens SET last_used_at = now()`)
	assert.NoError(t, err, "its use is noted")
}
