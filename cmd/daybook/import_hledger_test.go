package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/queue"
)

// TestImportHLedgerCopiesABook exports a ledger and imports it into another organization, which has
// no rules: its trial balance is the same. A journal that is deleted is reversed.
func TestImportHLedgerCopiesABook(t *testing.T) {
	t.Parallel()
	b := posted(t)
	file := filepath.Join(t.TempDir(), "books.journal")
	b.ok("export", "--format", "hledger", "--org", "es", "-o", file)
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "copy", "--create")
	args := []string{"import", "hledger", file, "--org", "copy", "--by", "clerk", "--reason", "moved from es"}
	assert.Contains(t, b.ok(append(args, "--dry-run")...), "dry run, nothing is written")
	assert.Contains(t, b.ok(args...), "0 changed, 0 unchanged, 0 skipped, 0 failed")
	b.work()
	table := func(org string) string {
		_, rest, _ := strings.Cut(b.ok("trial-balance", "--org", org), "\n")
		return rest
	}
	require.NotEmpty(t, table("es"))
	assert.Equal(t, table("es"), table("copy"))
	assert.Contains(t, b.ok(args...), "0 new, 0 changed,", "it is imported once")
	b.ok("audit", "--org", "copy")

	const opening = "2026-01-01 opening balances  ; id:opening\n  a:1200  5.00 EUR\n  e:%s\n"
	write(t, file, strings.Replace(opening, "%s", "9999", 1))
	r := b.run("import", "hledger", file, "--org", "copy", "--dry-run")
	assert.Contains(t, r.out, `UNKNOWN_ACCOUNT: rule "journal": entry 2: account "9999" is not in the chart`)
	assert.Equal(t, failure.ExitUsage, b.run("import", "hledger", file).exit)
	write(t, file, strings.Replace(opening, "%s", "4400", 1))
	b.ok(args...)
	b.work()
	assert.Contains(t, b.ok("explain", "copy", "opening"), "opening balances, by clerk")
	before := table("copy")
	require.NotEqual(t, table("es"), before)

	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := queue.MarkDocumentDeleted(t.Context(), tx, queue.Document{OrgID: "copy", ID: "opening"})
		return err
	}))
	b.work()
	assert.Contains(t, b.ok("explain", "copy", "opening"), "reverses")
	b.ok("audit", "--org", "copy")
}
