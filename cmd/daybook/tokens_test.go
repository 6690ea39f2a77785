package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// A token that is revoked already stays so: the command says that it changed nothing, and the log
// of actions does not say otherwise.
func TestTokenIsRevokedTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var made struct{ ID string }
	b.json(&made, "tokens", "create", "--name", "shop", "--scope", "read", "--all-orgs")
	assert.Contains(t, b.ok("tokens", "revoke", made.ID), "revoked "+made.ID+" (shop)")
	again := b.run("tokens", "revoke", made.ID)
	assert.Equal(t, failure.ExitOK, again.exit)
	assert.Equal(t, "Nothing was changed: the token "+made.ID+" (shop) is revoked already.", strings.TrimSpace(again.err))
	assert.Empty(t, again.out)
	var said []bool
	rows, err := b.Pool.Query(t.Context(),
		`SELECT (details->>'changed')::boolean FROM daybook.actions WHERE action = 'tokens.revoke' ORDER BY at`)
	require.NoError(t, err)
	for rows.Next() {
		var changed bool
		require.NoError(t, rows.Scan(&changed))
		said = append(said, changed)
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, []bool{true, false}, said)
}
