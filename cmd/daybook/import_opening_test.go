package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// An open item stands for a document of another system: that one is not posted when it is imported
// later, and is put together with its payment by its own id.
func TestImportOpeningStandsForADocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	const number = "2025-17"
	file := write(t, filepath.Join(t.TempDir(), "open.csv"), "account,number,issue_date,amount,currency,document\n"+
		"1200,"+number+",2025-12-01,119.00,EUR,old-17\n1200,18,2025-12-02,7.00,EUR,\n")
	args := []string{"import", "opening", file, "--against", "4400", "--reason", "opening", "--org", "acme"}
	b.ok(append(args, "--dry-run")...)
	elsewhere := func() int { return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.posted_elsewhere`) }
	assert.Zero(t, elsewhere(), "of a dry run")
	b.ok(args...)
	b.ok(args...)
	require.Equal(t, 1, elsewhere())
	b.work()
	open := func() int {
		return fixture.Count(t, b.Pool, `SELECT coalesce(sum(open_amount), 0)::bigint FROM daybook.open_items('acme') WHERE number = $1`, number)
	}
	before := b.ok("trial-balance", "--org", "acme")
	require.Equal(t, 11900, open())

	old := fixture.Invoice("acme", "old-17", 10000)
	old.Content.Number = number
	content, err := json.Marshal(old.Content)
	require.NoError(t, err)
	result, _ := b.imported(strings.Replace(line("old-17", "invoice", string(content)), `"in"`, `"out"`, 1))
	require.Equal(t, 1, result.Inserted)
	b.work()
	assert.Equal(t, before, b.ok("trial-balance", "--org", "acme"), "the document is not posted again")
	assert.Equal(t, 11900, open(), "and open once")
	b.ok("audit", "--org", "acme")
	assert.Contains(t, b.ok("accounting", "elsewhere", "acme", "old-17"), "open here as opening:1200/"+number+"/")

	b.ok("open-items", "reconcile", "--org", "acme", "old-17", "opening:1200/18/")
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.items_of_document('acme', 'old-17')`))
	b.ok("open-items", "unreconcile", "--org", "acme", "old-17")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.reconciled`))

	write(t, file, "account,number,issue_date,amount,currency,document\n1200,19,2025-12-01,1.00,EUR,old-17\n1200,20,2025-12-01,1.00,EUR,opening:1200/18/\n")
	r := b.run(args...)
	assert.Contains(t, r.out+r.err, "document old-17 has the open item opening:1200/"+number+"/ already")
	assert.Contains(t, r.out+r.err, "document opening:1200/18/ is posted here already")

	// The item is taken back: the document is posted as any other from then on.
	b.ok("import", "undo", "1")
	assert.Zero(t, elsewhere())
	b.ok("accounting", "repost", "acme", "old-17")
	b.work()
	assert.Equal(t, 11900, open(), "of the document")
	b.ok("audit", "--org", "acme")
}

// An account that the chart lacks is refused before anything is written, also by a dry run; lines that
// cannot be read are refused with their number, and counted as such.
func TestImportOpeningRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	file := write(t, filepath.Join(t.TempDir(), "open.csv"), "account,number,issue_date,amount,currency\n"+
		"1200,17,2025-12-01,119.00,EUR\n1200,18,2025-02-30,7.00,EUR\n9,19,2025-12-01,7.00,EUR\n")
	args := func(account string, more ...string) []string {
		return append([]string{"import", "opening", file, "--reason", "opening", "--org", "acme", "--against", account}, more...)
	}
	for _, more := range [][]string{nil, {"--dry-run"}} {
		r := b.run(args("4711", more...)...)
		assert.Equal(t, failure.ExitUsage, r.exit)
		assert.Contains(t, r.err, "--against 4711: the chart of acme has no such account")
	}
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents`))
	assert.Equal(t, failure.ExitNotFound, b.run("import", "opening", file, "--reason", "r", "--org", "unknown", "--against", "1").exit)
	r := b.run(args("4400", "--dry-run")...)
	assert.Contains(t, r.out, "line 3: ")
	assert.Contains(t, r.out, "date 2025-02-30: there is no such day")
	assert.Contains(t, r.err, "1 line or file is refused, and 1 document would fail")
}
