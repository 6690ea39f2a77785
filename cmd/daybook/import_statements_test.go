package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// TestImportStatements: what the sample rules post to the bank is what moved between the balances of
// each day, a statement that overlaps adds nothing, and one that contradicts itself nothing at all.
func TestImportStatements(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	dir := t.TempDir()
	for _, format := range []struct {
		use, file, change, to, again, want string
	}{
		// 1000.00 to 1029.50.
		{"camt", "statement.camt.xml", "2026-17", "2026-18", "6 unchanged, 1 skipped", "2950 2026-01-05 6"},
		// 1000.00 to 1077.50.
		{"mt940", "statement.sta", "STARTUMSE", "AGAIN", "5 unchanged, 0 skipped", "7750 2026-01-01 5"},
	} {
		text := read(t, "../../internal/moving/importer/testdata/"+format.file)
		path := write(t, filepath.Join(dir, format.use, format.file), text)
		assert.Contains(t, b.ok("import", format.use, "--org", "acme", filepath.Dir(path)), " new, 0 changed, 0 unchanged")
		path = write(t, filepath.Join(dir, format.use, format.file), strings.Replace(text, format.change, format.to, 1))
		assert.Contains(t, b.ok("import", format.use, "--org", "acme", path), "0 new, 0 changed, "+format.again)
		b.work()
		const q = `
SELECT concat_ws(' ', sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END), min(i.posting_date), count(*))
FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
WHERE e.account_code = '1000' AND d.content->>'source' = $1`
		var got string
		require.NoError(t, b.Pool.QueryRow(t.Context(), q, format.use).Scan(&got))
		assert.Equal(t, format.want, got)

		bad := write(t, filepath.Join(dir, "bad"+filepath.Ext(format.file)), strings.NewReplacer("1029.50", "1029.51", "1077,50", "1077,51").
			Replace(text))
		r := b.run("import", format.use, "--org", "acme", bad)
		assert.Equal(t, failure.ExitFailure, r.exit)
		assert.Contains(t, r.out, "TOTALS_DIFFER: the closing balance is stated as ")
		assert.Contains(t, r.out, "a difference of 0.01 EUR")
	}
	r := b.run("import", "camt", dir)
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "give --org")
}
