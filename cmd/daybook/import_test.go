package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/models"
)

const goblInvoice = "../../internal/moving/importer/testdata/invoice.json"

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestImportGOBLIsIdempotent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub", "a.json"), read(t, goblInvoice))
	write(t, filepath.Join(dir, "order.json"), `{"$schema":"https://gobl.org/draft-0/bill/order","type":"purchase"}`)
	write(t, filepath.Join(dir, "notes.txt"), "not for import")
	args := []string{"import", "gobl", dir, "--create", "--org", "acme"}

	var first, second, third books.ImportResult
	b.json(&first, args...)
	assert.Equal(t, 1, first.Inserted)
	require.Len(t, first.Skipped, 1)
	assert.Contains(t, first.Skipped[0].Source, "order.json")
	b.json(&second, args...)
	assert.Equal(t, 0, second.Inserted)
	assert.Equal(t, 1, second.Unchanged)
	assert.Equal(t, int64(1), b.version("acme"), "an unchanged document is not marked ready again")

	write(t, filepath.Join(dir, "sub", "a.json"),
		strings.Replace(read(t, goblInvoice), "Regular customer", "Large order", 1))
	b.json(&third, args...)
	assert.Equal(t, 1, third.Changed)
	assert.Equal(t, int64(2), b.version("acme"))
}

// version returns the version of the organization's only document, and checks that its job asks for
// that.
func (b *bundle) version(org string) int64 {
	b.t.Helper()
	var document, job int64
	const q = `
SELECT d.accounting_ready_version, q.version_hint
  FROM daybook.documents d JOIN daybook.accounting_work_queue q ON q.org_id = d.org_id AND q.document_id = d.id
 WHERE d.org_id = $1`
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), q, org).Scan(&document, &job))
	assert.Equal(b.t, document, job)
	return document
}

func TestImportGOBLFindsTheOrganization(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args      []string
		org       string
		direction models.Direction
		with      string
	}{
		"by name":         {[]string{"--org", "acme"}, "acme", models.DirectionOut, "Sample Customer"},
		"by supplier":     {[]string{"--org-by", "supplier"}, "EL123", models.DirectionOut, "Sample Customer"},
		"by country":      {[]string{"--org-by", "country"}, "gr", models.DirectionOut, "Sample Customer"},
		"as the receiver": {[]string{"--org", "acme", "--direction", "in"}, "acme", models.DirectionIn, "Sample Supplier"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.ok(append([]string{"import", "gobl", goblInvoice, "--create"}, test.args...)...)
			var direction models.Direction
			var with string
			const q = `
SELECT direction, content->>'counterparty' FROM daybook.documents JOIN daybook.organizations o ON o.id = org_id WHERE org_id = $1`
			require.NoError(t, b.Pool.QueryRow(t.Context(), q, test.org).Scan(&direction, &with))
			assert.Equal(t, test.direction, direction)
			assert.Equal(t, test.with, with)
		})
	}
}

// TestImportElectronicInvoices: of a folder the files of the format are read, and a document whose
// totals contradict its parts is told with its code.
func TestImportElectronicInvoices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	ubl := read(t, "../../internal/moving/importer/testdata/invoice.ubl.xml")
	write(t, filepath.Join(dir, "ubl", "1.xml"), ubl)
	write(t, filepath.Join(dir, "ubl", "2.xml"), strings.NewReplacer("A-17", "A-18", ">207.00<", ">207.01<").Replace(ubl))
	write(t, filepath.Join(dir, "ubl", "notes.txt"), "not for import")
	write(t, filepath.Join(dir, "cii", "1.xml"), read(t, "../../internal/moving/importer/testdata/invoice.cii.xml"))
	write(t, filepath.Join(dir, "bill.pdf"), "no PDF")

	r := b.run("import", "ubl", filepath.Join(dir, "ubl"), "--create", "--org", "acme")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "TOTALS_DIFFER: the amount to pay (BT-115) is stated as 207.01 EUR")
	assert.Contains(t, r.out, "1 new, 0 changed, 0 unchanged, 0 skipped, 1 failed")
	assert.Contains(t, b.ok("import", "cii", filepath.Join(dir, "cii"), "--create", "--org", "beta", "--direction", "in"), "1 new")
	r = b.run("import", "facturx", filepath.Join(dir, "bill.pdf"), "--org", "acme")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "it is not a PDF that can be read")

	const q = `
SELECT string_agg(concat_ws(' ', org_id, id, direction, content->>'counterparty', content->'payable'), ', ' ORDER BY org_id) FROM daybook.documents`
	var got string
	require.NoError(t, b.Pool.QueryRow(t.Context(), q).Scan(&got))
	assert.Equal(t, "acme 380/A-17/DE123 out Sample Customer 20700, beta 380/A-17/DE123 in Sample Supplier 20700", got)
}

// TestImportDryRun shows what an import would post and what would fail, and leaves everything as it
// was.
func TestImportDryRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const ubl = "../../internal/moving/importer/testdata/invoice.ubl.xml"
	r := b.run("import", "ubl", ubl, "--org", "acme", "--dry-run")
	assert.Equal(t, failure.ExitNotFound, r.exit, "an unknown organization is refused as without the flag")

	r = b.run("import", "ubl", ubl, "--org", "bare", "--create", "--dry-run")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "would fail  "+ubl+": NO_MATCHING_RULE: organization bare has no active rule set")
	assert.Contains(t, r.out, "dry run, nothing is written: 1 new, 0 changed, 0 unchanged, 0 skipped, 0 failed")

	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "acme", "--create")
	b.ok("rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", "acme")
	var would struct {
		Inserted int `json:"inserted"`
		DryRun   struct {
			Accounts []struct {
				Account string `json:"account"`
				Debit   int64  `json:"debit_minor,string"`
				Credit  int64  `json:"credit_minor,string"`
			} `json:"accounts"`
		} `json:"dry_run"`
	}
	b.json(&would, "import", "ubl", ubl, "--org", "acme", "--dry-run")
	assert.Equal(t, 1, would.Inserted)
	var debit, credit int64
	for _, a := range would.DryRun.Accounts {
		debit, credit = debit+a.Debit, credit+a.Credit
	}
	assert.Equal(t, debit, credit)
	assert.GreaterOrEqual(t, debit, int64(20700))

	var left string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT concat_ws(' ', (SELECT count(*) FROM daybook.documents), (SELECT count(*) FROM daybook.accounting_work_queue),
       (SELECT string_agg(id, ',') FROM daybook.organizations))`).Scan(&left))
	assert.Equal(t, "0 0 acme", left)
	b.ok("import", "ubl", ubl, "--org", "acme")
	assert.Contains(t, b.ok("import", "ubl", ubl, "--org", "acme", "--dry-run"), "0 new, 0 changed, 1 unchanged")

	// Of a document that is posted, the reversal is shown as well, and nothing where the same would be
	// posted.
	b.work()
	changed := write(t, t.TempDir()+"/1.xml", strings.Replace(read(t, ubl), "Sample Customer", "Another", 1))
	assert.NotContains(t, b.ok("import", "ubl", changed, "--org", "acme", "--dry-run"), "207.00")
	write(t, changed, strings.Replace(read(t, ubl), "2025-03-31", "2025-04-01", 1))
	out := b.ok("import", "ubl", changed, "--org", "acme", "--dry-run")
	assert.Regexp(t, `(?m)^380/A-17/DE123 +2025-03-31 +1200 +EUR +207.00$`, out)
	assert.Regexp(t, `(?m)^380/A-17/DE123 +2025-04-01 +1200 +EUR +207.00$`, out)
}

func TestImportGOBLKnowsDocumentsByTheirFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	one := write(t, filepath.Join(dir, "1.json"), read(t, goblInvoice))
	write(t, filepath.Join(dir, "2.json"), strings.Replace(read(t, goblInvoice), "Regular customer", "Large order", 1))

	r := b.run("import", "gobl", dir, "--create", "--org", "acme")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "it has the id of "+one)
	assert.Contains(t, r.out, "1 new, 0 changed, 0 unchanged, 0 skipped, 1 failed")
	assert.Contains(t, b.ok("import", "gobl", dir, "--create", "--org", "acme", "--id-by", "file"), "2 new")
}

func TestImportNDJSONGoesOnAfterABadLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := strings.SplitAfter(read(t, "dev/documents.ndjson"), "\n")
	input := lines[0] + "{\"org_id\": 7}\n\n" + lines[1]

	r := call(t.Context(), input, "--database-url", b.URL, "import", "ndjson", "-", "--create")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "failed  standard input: line 2: ")
	assert.Contains(t, r.out, "2 new, 0 changed, 0 unchanged, 0 skipped, 1 failed")
	assert.Contains(t, r.err, "1 document failed")

	r = call(t.Context(), lines[0]+lines[1], "--database-url", b.URL, "import", "ndjson", "-", "--create")
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	assert.Contains(t, r.out, "0 new, 0 changed, 2 unchanged")
}

// The importer must not hold an organization while it writes a document: a worker that fails the
// document locks them the other way round.
func TestImportDoesNotWaitForAnOrganizationThatIsKnown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("import", "gobl", goblInvoice, "--create", "--org", "acme")
	i := books.NewImporter(b.Pool, func() {})
	item, err := books.GOBL.ReadFile(goblInvoice, goblInvoice,
		books.FileOwner{Org: "acme", IdBy: books.ByFile, Direction: "out"})
	require.NoError(t, err)
	require.NoError(t, i.Many(t.Context(), []books.ImportItem{item}))
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.organizations WHERE id = 'acme' FOR SHARE`)
	require.NoError(t, err)

	item.Document.ID = "other"
	require.NoError(t, i.Many(t.Context(), []books.ImportItem{item}))
	assert.Equal(t, 2, i.Result.Inserted)
}

// TestImportWithoutPreparedStatements imports as programs do behind a pooler in transaction mode, in
// a session with a time zone west of UTC: dates are not moved.
func TestImportWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		b := setup(t)
		u, err := url.Parse(b.URL)
		require.NoError(t, err)
		query := u.Query()
		query.Set("default_query_exec_mode", mode)
		query.Set("timezone", "America/New_York")
		u.RawQuery = query.Encode()
		lines := line("a", "payment", `{"amount": 100}`) + "\n" + line("b", "payment", `{"amount": 200}`)
		r := call(t.Context(), lines, "--database-url", u.String(), "import", "ndjson", "-", "--create")
		require.Equal(t, failure.ExitOK, r.exit, "%s: %s%s", mode, r.out, r.err)
		var days []string
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT array_agg(issue_date::text) FROM daybook.documents`).Scan(&days))
		assert.Equal(t, []string{"2026-01-05", "2026-01-05"}, days, mode)
	}
}

// TestImportNDJSONHasNoOrganization: the documents name theirs, and the error says so.
func TestImportNDJSONHasNoOrganization(t *testing.T) {
	t.Parallel()
	r := call(t.Context(), "", "import", "ndjson", "--org", "acme", "dev/documents.ndjson")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err,
		"unknown flag: --org: each document of this format names its own organization, in the member org_id")
}
