package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/failure"
)

func TestExport(t *testing.T) {
	t.Parallel()
	b := posted(t)
	file := filepath.Join(t.TempDir(), "books.journal")
	b.ok("export", "--format", "hledger", "--org", "es", "--assertions", "-o", file)
	journal, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(journal), "EUR")
	first := b.ok("export", "--format", "csv", "--all-orgs")
	again := b.ok("export", "--format", "csv", "--all-orgs")
	assert.Equal(t, first, again, "the same bytes for the same ledger")
	assert.Equal(t, failure.ExitUsage, b.run("export", "--format", "csv").exit)
	assert.Equal(t, failure.ExitUsage, b.run("export", "--format", "pdf", "--all-orgs").exit)
	assert.Equal(t, failure.ExitUsage, b.run("export", "--format", "hledger", "--all-orgs", "--from", "2026-13-01").exit)
}
