package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/failure"
)

// A misspelled organization is an error, and not a new one.
func TestCommandsCreateNoOrganizationByMistake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	for _, args := range [][]string{
		{"rules", "apply", "../../internal/sample/rules.yaml", "--org", "acme", "--org", "acne"},
		{"accounts", "import", "../../internal/sample/chart.csv", "--org", "acne"},
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

	b.ok("rules", "apply", "../../internal/sample/rules.yaml", "--org", "beta", "--create")
	b.ok("accounting", "enqueue", "gamma", "d", "--version", "1")
	b.ok("organizations", "pause", "--org", "gamma")
	require.Len(t, b.organizations(), 3, "one that has jobs is known")
	assert.Equal(t, failure.ExitUsage, b.run("organizations", "pause", "--all-orgs", "--create").exit)
	assert.Equal(t, failure.ExitUsage, b.run("organizations", "pause", "--org", "").exit)
}

// What is asked of a misspelled organization is not answered as if nothing of it were due, and no proof is made that nothing of it was left to erase.
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
			{"rules", "check", "../../internal/sample/rules.yaml"},
			{"audit"},
			{"entries"},
			{"trial-balance"},
			{"export", "--format", "hledger"},
			{"accounts", "ledger", "1200"},
			{"rules", "show"},
		} {
			r := b.run(append(args, "--org", "acne")...)
			assert.Equal(t, failure.ExitNotFound, r.exit, "%v: %s", args, r.err)
			assert.Contains(t, r.err, "knows no organization acne", "%v", args)
		}
	}
	assert.Contains(t, b.run("tokens", "create", "--name", "t", "--scope", "read", "--org", "acne").err, "Daybook had nothing of organization acne until now")
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
