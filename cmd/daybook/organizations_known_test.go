package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// A misspelled organization is an error, and not a new one.
func TestCommandsCreateNoOrganizationByMistake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	for _, args := range [][]string{
		{"rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", "acme", "--org", "acne"},
		{"accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "acne"},
		{"organizations", "pause", "--org", "acne"},
		{"organizations", "resume", "--org", "acne"},
		{"organizations", "cap", "--org", "acne", "--max-in-flight", "5"},
		{"periods", "add", "--org", "acne", "--year", "2026"},
		{"periods", "close", "--org", "acne", "--month", "2026-03"},
		{"periods", "policy", "first_open_day", "--org", "acne"},
	} {
		r := b.run(args...)
		assert.Equal(t, failure.ExitNotFound, r.exit, "%v: %s", args, r.err)
		assert.Contains(t, r.err, "no organization acne: check the id", "%v", args)
	}
	require.Len(t, b.organizations(), 1)

	b.ok("rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", "beta", "--create")
	b.ok("accounting", "enqueue", "--create", "gamma", "d", "--version", "1")
	b.ok("organizations", "pause", "--org", "gamma")
	require.Len(t, b.organizations(), 3, "one that has jobs is known")
	assert.Equal(t, failure.ExitUsage, b.run("organizations", "pause", "--all-orgs", "--create").exit)
	assert.Equal(t, failure.ExitUsage, b.run("organizations", "pause", "--org", "").exit)
}

// What is asked of a misspelled organization is not answered as if nothing of it were due, and no
// proof is made that nothing of it was left to erase.
func TestCommandsAnswerNothingOfAMisspelledOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	dir := t.TempDir()
	for range 2 { // that it was refused makes it no more known
		for _, args := range [][]string{
			{"accounting", "list"},
			{"accounting", "retry", "--state", "failed", "--all"},
			{"jobs", "list"},
			{"jobs", "stats"},
			{"jobs", "retry", "--all"},
			{"jobs", "cancel", "--all"},
			{"status", "--no-temporal"},
			{"doctor", "--no-temporal"},
			{"actions", "list"},
			{"tokens", "list"},
			{"archive", "list"},
			{"archive", "move", "--before", "1h", "--archive", dir},
			{"erase", "--all", "--no-archive"},
			{"erase", "--link", "customer=ada", "--no-archive"},
			{"erasures", "list"},
			{"rules", "check", "../../internal/moving/sample/rules.yaml"},
			{"audit"},
			{"entries"},
			{"trial-balance"},
			{"statement", "balance"},
			{"statement", "income"},
			{"statement", "cash"},
			{"statement", "vat"},
			{"year-end", "--year", "2026", "--undo"},
			{"export", "--format", "hledger"},
			{"accounts", "ledger", "1200"},
			{"rules", "show"},
		} {
			r := b.run(append(args, "--org", "acne")...)
			assert.Equal(t, failure.ExitNotFound, r.exit, "%v: %s", args, r.err)
			assert.Contains(t, r.err, "knows no organization acne", "%v", args)
		}
	}
	b.ok("tokens", "create", "--name", "t", "--scope", "read", "--org", "acne", "--create")
	assert.Contains(t, b.ok("tokens", "list", "--org", "acne"), "acne", "what has a token is known")
}

// Whatever SQL has written of an organization makes it known to every command.
func TestCommandsKnowOrganizationsThatOnlySQLHasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, issue_date, currency, content)
VALUES ('documents', 'd', 'invoice', 'out', '2026-03-01', 'EUR', '{}');
SELECT daybook.enqueue_accounting_job('accounting', 'd', 1);
SELECT daybook.enqueue_job('jobs', 'cleanup', '{}')`)
	require.NoError(t, err)
	for _, org := range []string{"documents", "accounting", "jobs"} {
		for _, args := range [][]string{
			{"rules", "list", "--org", org},
			{"accounts", "list", "--org", org},
			{"periods", "list", "--org", org},
			{"entries", "--org", org},
			{"trial-balance", "--org", org},
			{"audit", "--org", org},
			{"export", "--org", org, "--format", "hledger"},
			{"organizations", "pause", "--org", org},
		} {
			r := b.run(args...)
			assert.Zero(t, r.exit, "%v: %s", args, r.err)
		}
	}
	r := b.run("periods", "list", "--org", "nothing")
	assert.Equal(t, failure.ExitNotFound, r.exit)
	assert.Contains(t, r.err, "Daybook knows no organization nothing")
}

// TestCommandsWriteNothingForAMisspelledOrganization: every command that writes for an organization
// refuses one that Daybook does not know, also where a file names it, says which one may be meant,
// and takes it with --create.
func TestCommandsWriteNothingForAMisspelledOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("testshop")
	dir := t.TempDir()
	const csvRows = "No,Day,Qty,Price,Org\n1,2026-01-31,2,9.99,teshop\n2,2026-01-31,1,1,teshop\n"
	mapping := write(t, filepath.Join(dir, "mapping.yaml"), csvMapping)
	byColumn := write(t, filepath.Join(dir, "column.yaml"),
		strings.Replace(csvMapping, "document:\n", "document:\n  organization: Org\n", 1))
	rows := write(t, filepath.Join(dir, "a.csv"), csvRows)
	ndjson := write(t, filepath.Join(dir, "a.ndjson"),
		`{"org_id": "teshop", "id": "p", "type": "payment", "direction": "in", "currency": "EUR", `+
			`"issue_date": "2026-01-31", "content": {"amount": 100}}`+"\n")
	for name, test := range map[string]struct {
		args []string
		exit int
	}{
		"csv": {
			[]string{"import", "csv", rows, "--org", "teshop", "--mapping", mapping},
			failure.ExitNotFound,
		},
		"csv by column":    {[]string{"import", "csv", rows, "--mapping", byColumn}, failure.ExitFailure},
		"gobl":             {[]string{"import", "gobl", goblInvoice, "--org", "teshop"}, failure.ExitNotFound},
		"gobl by supplier": {[]string{"import", "gobl", goblInvoice, "--org-by", "supplier"}, failure.ExitFailure},
		"ndjson":           {[]string{"import", "ndjson", ndjson}, failure.ExitFailure},
		"accounting":       {[]string{"accounting", "enqueue", "teshop", "d", "--version", "1"}, failure.ExitNotFound},
		"jobs":             {[]string{"jobs", "enqueue", "mail", "--org", "teshop"}, failure.ExitNotFound},
		"tokens": {
			[]string{"tokens", "create", "--name", "t", "--scope", "read", "--org", "teshop"},
			failure.ExitNotFound,
		},
		"rules": {
			[]string{"rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", "teshop"},
			failure.ExitNotFound,
		},
		"accounts": {
			[]string{"accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "teshop"},
			failure.ExitNotFound,
		},
	} {
		r := b.run(test.args...)
		assert.Equal(t, test.exit, r.exit, "%s: %s", name, r.err)
		assert.Contains(t, r.out+r.err, "Daybook knows no organization ", name)
		assert.Contains(t, r.out+r.err, "or add --create to make it known", name)
		if name != "gobl by supplier" {
			assert.Contains(t, r.out+r.err, "did you mean testshop?", name)
		}
	}
	require.Len(t, b.organizations(), 1)
	var written int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM daybook.documents) + (SELECT count(*) FROM daybook.accounting_work_queue) + (SELECT count(*) FROM daybook.jobs)
     + (SELECT count(*) FROM daybook.api_tokens)`).Scan(&written))
	assert.Zero(t, written)
	assert.Contains(t, b.ok("import", "csv", rows, "--org", "teshop", "--mapping", mapping, "--create"), "2 new")
	assert.Contains(t, b.ok("import", "csv", rows, "--org", "teshop", "--mapping", mapping), "2 unchanged",
		"it is known now")
}
