package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// TestInitApp writes an application without a database, and says what comes next; a second call is
// refused. Package newapp runs what is written.
func TestInitApp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my shop")
	args := []string{"init", "app", dir, "--module", "example.com/shop", "--replace", "../.."}
	r := call(t.Context(), "", args...)
	require.Zero(t, r.exit, r.err)
	assert.Contains(t, r.out, "cd '"+dir+"'\n")
	assert.FileExists(t, filepath.Join(dir, "migrations", "00001_orders.sql"))
	r = call(t.Context(), "", args...)
	assert.Equal(t, failure.ExitConflict, r.exit)
	assert.Contains(t, r.err, "is not empty")
}
