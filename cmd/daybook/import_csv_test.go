package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

const (
	onlineRetail        = "../../../shared/data/online-retail.tar.xz"
	onlineRetailMapping = "../../internal/moving/sample/online-retail/mapping.yaml"
)

const csvMapping = `group: {key: No}
document:
  number: No
  date: Day
  currency: {value: EUR}
  types: [{prefix: C, type: credit_note, negate: true}, {type: invoice}]
lines: {quantity: Qty, price: Price}
`

// zipFile writes an archive with one file.
func zipFile(t *testing.T, path, name, text string) string {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	entry, err := w.Create(name)
	require.NoError(t, err)
	_, err = entry.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	return path
}

func TestImportCSVIsIdempotent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	mapping := write(t, filepath.Join(dir, "mapping.yaml"), csvMapping)
	file := write(t, filepath.Join(dir, "sub", "a.csv"), "No,Day,Qty,Price\n1,2025-01-31,2,9.99\n")
	args := []string{"import", "csv", "--create", "--org", "acme", "--mapping", mapping, dir}

	var first, second, third books.ImportResult
	b.json(&first, args...)
	assert.Equal(t, 1, first.Inserted)
	b.json(&second, args...)
	assert.Equal(t, []int{0, 1}, []int{second.Inserted, second.Unchanged})
	assert.Equal(t, int64(1), b.version("acme"), "an unchanged document is not marked ready again")
	write(t, file, "No,Day,Qty,Price\n1,2025-01-31,3,9.99\n")
	b.json(&third, args...)
	assert.Equal(t, 1, third.Changed)
	assert.Equal(t, int64(2), b.version("acme"))
}

func TestImportCSVRefusesWholeDocuments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	mapping := write(t, filepath.Join(dir, "mapping.yaml"), csvMapping)
	file := write(t, filepath.Join(dir, "a.csv"),
		"No,Day,Qty,Price\n1,2025-01-31,2,9.99\n2,2025-01-31,1,1\n1,2025-01-31,x,1\nC3,2025-01-31,-1,1\n")
	r := b.run("import", "csv", "--create", "--org", "acme", "--mapping", mapping, file)
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out,
		"failed  "+file+": line 2: document 1: invalid document: "+file+`: line 4: Qty: "x" is not a number`)
	assert.Contains(t, r.out, "2 new, 0 changed, 0 unchanged, 0 skipped, 1 failed")
	var ids []string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT array_agg(id ORDER BY id) FROM daybook.documents`).Scan(&ids))
	assert.Equal(t, []string{"2", "C3"}, ids)
}

func TestImportCSVUsage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	mapping := write(t, filepath.Join(dir, "mapping.yaml"), csvMapping)
	wrong := write(t, filepath.Join(dir, "wrong.yaml"), strings.Replace(csvMapping, "date", "dates", 1))
	file := write(t, filepath.Join(dir, "a.csv"), "No\n")
	for _, test := range []struct {
		exit int
		want string
		args []string
	}{
		{failure.ExitUsage, "give --mapping FILE", []string{file}},
		{failure.ExitUsage, "wrong.yaml: mapping: 2 problems\n  3:3: missing key \"date\"; add it\n  4:3: unknown key " +
			"\"dates\"", []string{"--mapping", wrong, file}},
		{
			failure.ExitUsage, "no such mapping comes with Daybook, which has shopify-orders, stripe-balance or stripe-report",
			[]string{"--mapping", "nope", file},
		},
		{failure.ExitUsage, "there is no file that ends in .csv", []string{"--mapping", mapping, t.TempDir()}},
		{failure.ExitUsage, "name the organization", []string{"--mapping", mapping, file}},
		{failure.ExitNotFound, "no such file", []string{"--mapping", mapping, filepath.Join(dir, "none.csv")}},
	} {
		r := b.run(append([]string{"import", "csv"}, test.args...)...)
		assert.Equal(t, test.exit, r.exit, test.want)
		assert.Contains(t, r.err, test.want)
	}
}

// The other formats are read from archives as well.
func TestImportFromArchives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	gobl := zipFile(t, filepath.Join(dir, "gobl.zip"), "in/a.json", read(t, goblInvoice))
	assert.Contains(t, b.ok("import", "gobl", gobl, "--create", "--org", "acme"), "1 new")
	lines := strings.SplitAfter(read(t, "dev/documents.ndjson"), "\n")
	ndjson := zipFile(t, filepath.Join(dir, "own.zip"), "own.jsonl", lines[0]+"{}\n"+lines[1])
	r := b.run("import", "ndjson", ndjson, "--create")
	assert.Contains(t, r.out, "2 new, 0 changed, 0 unchanged, 0 skipped, 1 failed")
	assert.Contains(t, r.out, "failed  "+ndjson+"!own.jsonl: line 2: ")

	damaged := write(t, filepath.Join(dir, "damaged.zip"), "not a zip")
	r = b.run("import", "gobl", damaged, gobl, "--org", "acme")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "failed  "+damaged+": invalid document: the archive cannot be read")
	assert.Contains(t, r.out, "0 new, 0 changed, 1 unchanged, 0 skipped, 1 failed", "the next one goes on")
}

// TestImportOnlineRetail imports the whole data set twice.
func TestImportOnlineRetail(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(onlineRetail); err != nil {
		t.Skipf("the data set is not at %s", onlineRetail)
	}
	if testing.Short() {
		t.Skip("it takes a while")
	}
	b := setup(t)
	// The program as users have it: half a million lines take this process, with the race detector,
	// two minutes.
	binary := filepath.Join(t.TempDir(), "daybook")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "go build: %s", out)
	imported := func() books.ImportResult {
		began := time.Now()
		command := exec.CommandContext(t.Context(), binary, "--database-url", b.URL, "import", "csv", "--create", "--org",
			"shop", "--mapping", onlineRetailMapping, onlineRetail, "--json")
		var errs bytes.Buffer
		command.Stderr = &errs
		out, err := command.Output()
		require.NoError(t, err, "%s", &errs)
		t.Logf("imported in %v", time.Since(began))
		var result books.ImportResult
		require.NoError(t, camel.Unmarshal(out, &result))
		require.Len(t, result.Imports, 1)
		assert.EqualValues(t, result.Inserted, result.Imports[0].Inserted)
		result.Imports = nil
		return result
	}
	assert.Equal(t, books.ImportResult{
		Inserted: 25_900, Skipped: []books.ImportProblem{},
		Failed: []books.ImportProblem{},
	}, imported())
	assert.Equal(t, books.ImportResult{
		Unchanged: 25_900, Skipped: []books.ImportProblem{},
		Failed: []books.ImportProblem{},
	}, imported())

	var jobs, lines int
	var net int64
	const q = `
SELECT count(*), sum(jsonb_array_length(d.content -> 'lines')),
       sum(coalesce((d.content ->> 'payable')::bigint, 0) * CASE d.type WHEN 'credit_note' THEN -1 ELSE 1 END)
  FROM daybook.documents d JOIN daybook.accounting_work_queue q ON q.org_id = d.org_id AND q.document_id = d.id
 WHERE d.org_id = 'shop' AND q.version_hint = 1 AND d.accounting_ready_at IS NOT NULL`
	require.NoError(t, b.Pool.QueryRow(t.Context(), q).Scan(&jobs, &lines, &net))
	assert.Equal(t, []int64{25_900, 541_909, 974_774_793}, []int64{int64(jobs), int64(lines), net})
}

// Documents share transactions; one that the database refuses must not take its neighbours with it.
func TestImportWritesWhatItCanOfABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	item, err := books.GOBL.ReadFile(goblInvoice, goblInvoice,
		books.FileOwner{Org: "acme", IdBy: books.ByFile, Direction: "out"})
	require.NoError(t, err)
	var items []books.ImportItem
	for _, id := range []string{"3", "bad", "1", "2", "1"} {
		item.Document.ID, item.Source = id, id
		items = append(items, item)
	}
	items[1].Document.Content.Number = "\x00"
	i := books.NewImporter(b.Pool, func() {})
	i.Create = true
	require.NoError(t, i.Many(t.Context(), items))
	assert.Equal(t, []int{3, 1, 1}, []int{i.Result.Inserted, i.Result.Unchanged, len(i.Result.Failed)})
	assert.Equal(t, "bad", i.Result.Failed[0].Source)
	var jobs int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM daybook.accounting_work_queue`).Scan(&jobs))
	assert.Equal(t, 3, jobs)
}

// TestImportCSVOfABankIsPosted imports rows that Excel saved, from an archive: a total row is left
// out and counted, and what the mapping calls a total is posted as the amount of the payment.
func TestImportCSVOfABankIsPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("shop")
	dir := t.TempDir()
	mapping := write(t, filepath.Join(dir, "mapping.yaml"), "\xef\xbb\xbf"+`csv: {skip: [{column: Id, is: Total}]}
group: {key: Id}
document: {date: Date, currency: {value: EUR}, direction: {value: in}, total: Amount, types: [{type: payment}]}
lines: {net: Amount}
`)
	archive := zipFile(t, filepath.Join(dir, "bank.zip"), "bank.csv",
		"\xef\xbb\xbf\"Id\",\"Date\",\"Amount\"\r\nbank-1,2026-01-05,119.00\r\nTotal,,119.00\r\n")
	args := []string{"import", "csv", "--org", "shop", "--mapping", mapping, archive}
	out := b.ok(args...)
	assert.Contains(t, out, "csv.skip  "+archive+"!bank.csv: 1 row left out, the first in line 3\n1 new, ")
	var again books.ImportResult
	b.json(&again, args...)
	assert.Equal(t, []importer.SkippedRows{{Source: archive + "!bank.csv", Rows: 1, FirstLine: 3}}, again.SkippedRows)
	b.work()
	assert.Contains(t, b.ok("trial-balance", "--org", "shop"), "119.00")
}

// TestImportShippedMappings posts what the mappings of shops and payment providers make by the
// sample rules: what was paid and given back leaves nothing open, and the provider's balance is what
// has not been paid out.
func TestImportShippedMappings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for org, mapping := range map[string]string{"shop": "shopify-orders", "stripe": "stripe-balance"} {
		b.sample(org)
		b.ok("import", "csv", "--org", org, "--mapping", mapping, "../../internal/moving/importer/testdata/"+mapping+".csv")
	}
	b.work()
	const q = `
SELECT string_agg(concat_ws(' ', account_code, currency, sum), ', ' ORDER BY account_code, currency) FROM (
    SELECT e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
    FROM daybook.entries e WHERE e.org_id = $1 GROUP BY 1, 2) AS sums (account_code, currency, sum)
WHERE sum <> 0`
	for org, want := range map[string]string{
		// Open are #1003, and the credit note of #1005, whose taxes the export does not tell apart.
		"shop": "1200 EUR 4755, 1360 EUR 5872, 1360 USD 9202, 3800 EUR -1198, 3800 USD -702, 4125 EUR -4495, 4400 EUR -5025, 4400 USD -7500, " +
			"4700 EUR 503, 4910 EUR -412, 4910 USD -1000",
		"stripe": "1200 EUR -105872, 1360 EUR 102477, 6855 EUR 3395",
	} {
		var got string
		require.NoError(t, b.Pool.QueryRow(t.Context(), q, org).Scan(&got))
		assert.Equal(t, want, got, org)
	}
	var failed int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM daybook.accounting_work_queue WHERE state <> 'completed'`).Scan(&failed))
	assert.Zero(t, failed)

	shown := b.ok("import", "csv", "--mapping", "stripe-balance", "--show-mapping")
	assert.Contains(t, shown, "group: {key: id}")
	r := b.run("import", "csv", "--mapping", "stripe-balance")
	assert.Equal(t, failure.ExitUsage, r.exit)
}
