package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/failure"
)

// TestDevOnServersThatAreGone: the shell still has the addresses that an earlier dev printed. It
// sets the environment, so it is not parallel.
func TestDevOnServersThatAreGone(t *testing.T) {
	t.Setenv("DAYBOOK_DATABASE_URL", "postgres://u:p@127.0.0.1:1/none")
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	dir := t.TempDir()
	r := call(t.Context(), "", "dev", "--dir", dir)
	assert.Equal(t, failure.DatabaseUnavailable.Exit, r.exit)
	assert.Contains(t, r.err, "unset DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS to have dev start its own")
	r = call(t.Context(), "", "dev", "--dir", dir, "--database-url", "postgres://u:p@127.0.0.1:1/other")
	assert.Equal(t, failure.DatabaseUnavailable.Exit, r.exit)
	assert.NotContains(t, r.err, "unset", "the flag names the database")
}
