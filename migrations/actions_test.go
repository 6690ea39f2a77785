package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestActionsAreAppendOnly: not even the owner changes or removes what operators did.
func TestActionsAreAppendOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(),
		`INSERT INTO daybook.actions (via, action, actor, outcome) VALUES ('cli', 'jobs.retry', 'ada', 'done')`)
	require.NoError(t, err)
	for _, stmt := range []string{
		`UPDATE daybook.actions SET actor = 'bob'`,
		`UPDATE daybook.actions SET outcome = 'refused'`,
		`DELETE FROM daybook.actions`,
		`TRUNCATE daybook.actions`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		assert.Equal(t, "DB004", store.SQLState(err), "%s: %v", stmt, err)
	}
}
