package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
)

// line is a document in Daybook's own format.
func line(id, kind, content string) string {
	return fmt.Sprintf(`{"org_id": "acme", "id": %q, "type": %q, "direction": "in", "currency": "EUR", "issue_date": "2026-01-05", "content": %s}`, id, kind, content)
}

// imported imports lines of Daybook's own format.
func (b *bundle) imported(lines ...string) (result books.ImportResult, r result) {
	b.t.Helper()
	r = call(b.t.Context(), strings.Join(lines, "\n"), "--database-url", b.URL, "import", "ndjson", "-", "--create",
		"--json")
	require.NoError(b.t, camel.Unmarshal([]byte(r.out), &result), r.err)
	return result, r
}

// wrote writes a document as an application does, past every importer, and marks it ready.
func (b *bundle) wrote(id, kind, content string) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ('acme', $1, $2, 'in', 'EUR', '2026-01-05', $3::text::jsonb)`, id, kind, content)
	require.NoError(b.t, err)
	_, err = b.Pool.Exec(b.t.Context(), `SELECT daybook.mark_document_ready('acme', $1)`, id)
	require.NoError(b.t, err)
}

// unpostable are documents whose money the sample rules would not post, or post the wrong way
// round.
var unpostable = []struct {
	id, kind, content string
	code              models.ErrorCode
}{
	{"payment", "payment", `{"total": 11900}`, models.CodeAmountNotRead},
	{"refund", "refund", `{"total": 11900}`, models.CodeAmountNotRead},
	{"payout", "payout", `{"total": 11900}`, models.CodeAmountNotRead},
	{"delivery", "delivery", `{"lines": [{"kind": "stock", "net": 100}]}`, models.CodeAmountNotRead},
	{"total", "invoice", `{"total": 11900}`, models.CodeAmountNotRead},
	{"amount", "invoice", `{"amount": 11900}`, models.CodeAmountNotRead},
	{"nothing", "invoice", `{}`, models.CodeAmountMissing},
	{"note", "credit_note", `{"lines": [{"kind": "item", "net": -100}], "taxes": [{"category": "VAT", "rate_bp": 1900, "amount": -19}], "payable": -119}`, models.CodeAmountSign},
	{"negative", "refund", `{"amount": -100}`, models.CodeAmountSign},
	{
		"differs", "invoice", `{"lines": [{"kind": "item", "net": 100}], "total": 999, "payable": 100}`,
		models.CodeTotalsDiffer,
	},
}

// What cannot be posted is refused at import, by the rules of the organization and by the
// convention of the type alike.
func TestImportRefusesAmountsThatAreNotPosted(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]bool{"by the rules": true, "by the type": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if rules {
				b.sample("acme")
			}
			lines := []string{line("good", "payment", `{"amount": 100}`)}
			for _, d := range unpostable {
				lines = append(lines, line(d.id, d.kind, d.content))
			}
			result, r := b.imported(lines...)
			assert.Equal(t, failure.ExitFailure, r.exit)
			assert.Equal(t, 1, result.Inserted)
			require.Len(t, result.Failed, len(unpostable))
			for i, d := range unpostable {
				assert.Equal(t, d.code, result.Failed[i].Code, result.Failed[i].Reason)
				assert.Equal(t, fmt.Sprintf("standard input: line %d: document %s", i+2, d.id), result.Failed[i].Source)
			}
		})
	}
}

// The other formats are held to the same.
func TestEveryFormatRefusesAmountsThatAreNotPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	mapping := write(t, filepath.Join(dir, "mapping.yaml"), `
group: {key: Id}
document:
  number: Id
  date: Date
  currency: {value: EUR}
  types: [{prefix: C-, type: credit_note, negate: true}, {type: delivery}]
lines: {net: Amount}
`)
	file := write(t, filepath.Join(dir, "x.csv"),
		"Id,Date,Amount\nd-1,2026-01-05,119.00\nC-1,2026-01-05,-119.00\nC-2,2026-01-05,119.00\n")
	r := b.run("import", "csv", "--org", "acme", "--create", "--mapping", mapping, file)
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "AMOUNT_NOT_READ: a document of type delivery is posted by content.lines.cost")
	assert.Contains(t, r.out, "C-2: AMOUNT_SIGN: ")
	assert.Contains(t, r.out, "1 new, 0 changed, 0 unchanged, 0 skipped, 2 failed")

	negative := strings.ReplaceAll(read(t, goblInvoice), `"payable": "`, `"payable": "-`)
	r = b.run("import", "gobl", write(t, filepath.Join(dir, "x.json"), negative), "--org", "acme")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "TOTALS_DIFFER")
}

// What an application writes past every importer fails as a job, with the same code, and posts
// nothing.
func TestAmountsThatAreNotPostedFail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	for _, d := range unpostable {
		b.wrote(d.id, d.kind, d.content)
	}
	b.work()
	for _, d := range unpostable {
		j := b.job("acme", d.id)
		assert.Equal(t, "failed", j.State, d.id)
		assert.Equal(t, string(d.code), j.ErrorCode, d.id)
	}
	var entries int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM daybook.entries`).Scan(&entries))
	assert.Zero(t, entries)
}

// What states zeros is completed, and each place says so.
func TestZeroIsPostedAndSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	result, _ := b.imported(line("free", "payment", `{"amount": 0}`),
		line("lines", "invoice", `{"lines": [{"kind": "item", "net": 0}], "payable": 0}`))
	assert.Equal(t, 2, result.Inserted, "%+v", result.Failed)
	b.wrote("own", "payment", `{"amount": 0, "fee": null}`)
	b.imported(line("money", "payment", `{"amount": 100}`))
	b.work()
	const says = "all its amounts are zero"
	for _, id := range []string{"free", "lines", "own"} {
		assert.Contains(t, b.ok("explain", "acme", id), "no entries: "+says)
		assert.Contains(t, b.ok("accounting", "show", "acme", id), says)
		assert.Contains(t, b.ok("accounting", "list", "--org", "acme"), says)
		var shown answers.Explanation
		b.json(&shown, "explain", "acme", id)
		assert.Equal(t, "zero", shown.NoEntries)
		assert.Equal(t, "zero", shown.Posting.NoEntries)
	}
	assert.NotContains(t, b.ok("explain", "acme", "money"), says)
	assert.Contains(t, b.ok("status", "--no-temporal"), "completed without an entry: 3 documents: "+says)
	assert.Nil(t, b.finding(health.AmountNotPosted, "--no-temporal"))
	b.ok("audit", "--org", "acme")
}

// Documents that were completed without an entry before that was refused are found.
func TestAmountsThatWereNotPostedAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.wrote("old", "payment", `{"amount": 0}`)
	b.wrote("zero", "payment", `{"amount": 0}`)
	b.work()
	_, err := b.Pool.Exec(t.Context(), `
ALTER TABLE daybook.impacts DISABLE TRIGGER USER;
UPDATE daybook.impacts SET no_entries = '';
ALTER TABLE daybook.impacts ENABLE TRIGGER USER;
UPDATE daybook.documents SET content = '{"total": 11900}' WHERE id = 'old'`)
	require.NoError(t, err)

	r := b.run("audit", "--org", "acme", "--json")
	assert.Equal(t, failure.ExitFailure, r.exit)
	var report books.Audited
	require.NoError(t, camel.Unmarshal([]byte(r.out), &report))
	found := map[string][]audit.Finding{}
	for _, c := range report.Checks {
		found[c.Kind] = c.Findings
	}
	require.Len(t, found["amount_not_posted"], 1)
	assert.Equal(t, "old", found["amount_not_posted"][0].DocumentID)
	f := b.finding(health.AmountNotPosted, "--no-temporal")
	require.NotNil(t, f)
	assert.Equal(t, int64(1), f.Count)
	assert.Contains(t, f.Todo, "`daybook accounting repost acme old`")

	b.ok("accounting", "repost", "acme", "old")
	b.work()
	assert.Equal(t, string(models.CodeAmountNotRead), b.job("acme", "old").ErrorCode)
}

// A rule that posts nothing says so, and its documents are no finding.
func TestRuleThatPostsNothingIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "acme", "--create")
	b.ok("rules", "apply", write(t, filepath.Join(t.TempDir(), "rules.yaml"), `
ruleset: r
rules:
  - {id: pro-forma, when: doc.type == "proforma", posts: nothing}
`), "--org", "acme")
	b.imported(line("p", "proforma", `{"payable": 100}`))
	b.work()
	assert.Contains(t, b.ok("explain", "acme", "p"), "no entries: its rule posts nothing")
	b.ok("audit", "--org", "acme")
}

// The first document of an id counts; a further one is named with its line and the first one's.
func TestImportFindsOneIDTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, other := line("a", "payment", `{"amount": 100}`), line("a", "payment", `{"amount": 200}`)
	result, r := b.imported(first, line("b", "payment", `{"amount": 100}`), other, first)
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Equal(t, 2, result.Inserted)
	require.Len(t, result.Failed, 1)
	assert.Equal(t, "standard input: line 3: document a", result.Failed[0].Source)
	assert.Contains(t, result.Failed[0].Reason,
		"it has the id of standard input: line 1 (a) and other content: the first one counts")
	require.Len(t, result.Skipped, 1)
	assert.Contains(t, result.Skipped[0].Reason, "the same document as in standard input: line 1")
	var amount int
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT (content->>'amount')::int FROM daybook.documents WHERE id = 'a'`).Scan(&amount))
	assert.Equal(t, 100, amount)

	dir := t.TempDir()
	write(t, filepath.Join(dir, "1.ndjson"), "\n"+line("c", "payment", `{"amount": 100}`))
	write(t, filepath.Join(dir, "2.ndjson"), line("c", "payment", `{"amount": 300}`))
	assert.Contains(t, b.run("import", "ndjson", dir).out,
		filepath.Join(dir, "2.ndjson")+": line 1: document c: invalid document: it has the id of "+
			filepath.Join(dir, "1.ndjson")+": line 2 (c)")
}

// The same number of a counterparty under two ids is a warning.
func TestImportWarnsOfOneNumberTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bill := func(id, number string) string {
		return line(id, "invoice",
			fmt.Sprintf(`{"number": %q, "counterparty": "Supplier", "lines": [{"kind": "item", "net": 100}], "payable": 100}`,
				number))
	}
	result, r := b.imported(bill("a", "17"), bill("b", "18"))
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	assert.Nil(t, result.Twice)
	result, r = b.imported(bill("a", "17"), bill("c", "17"), bill("d", "19"))
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	require.NotNil(t, result.Twice)
	require.Len(t, result.Twice.Numbers, 1)
	assert.Equal(t, []string{"a", "c"}, result.Twice.Numbers[0].Documents)
	assert.Equal(t, "17", result.Twice.Numbers[0].Number)
	result, _ = b.imported(bill("e", "20"))
	assert.Nil(t, result.Twice, "what was there before is not said again")
	b.imported(line("other", "credit_note",
		`{"number": "17", "counterparty": "Supplier", "lines": [{"kind": "item", "net": 100}], "payable": 100}`))
	b.sample("acme")
	b.work()
	out := b.ok("audit", "--org", "acme")
	assert.Contains(t, out, "number twice: 1")
	assert.Contains(t, out, "in invoice of Supplier has the number 17, and so has 1 other: c")
}
