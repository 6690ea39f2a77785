package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/failure"
)

func (b *bundle) applied(args ...string) books.Change {
	b.t.Helper()
	var out struct{ Organizations []books.Change }
	b.json(&out, append([]string{"rules"}, args...)...)
	require.Len(b.t, out.Organizations, 1)
	return out.Organizations[0]
}

func (b *bundle) ruleSets(org string) (versions []int64, active int64) {
	b.t.Helper()
	var out struct {
		RuleSets []books.RuleSetVersion `json:"rule_sets"`
	}
	b.json(&out, "rules", "list", "--org", org)
	for _, s := range out.RuleSets {
		versions = append(versions, s.Version)
		if s.Active {
			active = s.Version
		}
	}
	return versions, active
}

// withoutSales is the sample rule set with its rule for invoices turned off.
func withoutSales(t *testing.T) string {
	t.Helper()
	source := read(t, "../../internal/moving/sample/rules.yaml")
	const sale = `doc.type == "invoice" && doc.direction == "out"`
	require.Contains(t, source, sale)
	return write(t, t.TempDir()+"/rules.yaml", strings.Replace(source, sale, "false && "+sale, 1))
}

func TestRulesActivate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "es", "--create")
	b.ok("rules", "apply", withoutSales(t), "--org", "es")
	b.ok("import", "ndjson", "dev/documents.ndjson", "--create")
	b.work()
	require.Equal(t, "NO_MATCHING_RULE", b.job("es", "invoice-1").ErrorCode)

	assert.Equal(t, books.Change{OrgID: "es", Version: 2, Changed: true},
		b.applied("apply", "../../internal/moving/sample/rules.yaml", "--org", "es", "--no-activate"))
	versions, active := b.ruleSets("es")
	assert.Equal(t, []int64{2, 1}, versions)
	assert.Equal(t, int64(1), active, "stored only")
	assert.Equal(t, "failed", b.job("es", "invoice-1").State)
	assert.Contains(t, b.ok("rules", "show", "--org", "es", "--version", "2"), "version 2")
	assert.Contains(t, b.ok("rules", "show", "--org", "es"), "false && ")

	done := b.applied("activate", "2", "--org", "es")
	assert.Equal(t, books.Change{OrgID: "es", Version: 2, Changed: true, Returned: 2}, done)
	_, active = b.ruleSets("es")
	assert.Equal(t, int64(2), active)
	b.work()
	assert.Equal(t, "completed", b.job("es", "invoice-1").State)
	assert.Equal(t, books.Change{OrgID: "es", Version: 2}, b.applied("activate", "2", "--org", "es"), "active already")
	assert.Equal(t, books.Change{OrgID: "es", Version: 1, Changed: true}, b.applied("activate", "1", "--org", "es"),
		"and back")
	assert.Regexp(t, `(?m)^ +1  active  .*  sample$`, b.ok("rules", "list", "--org", "es"))
}

func TestRulesActivateRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	for _, test := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{"activate", "7", "--org", "acme"}, failure.ExitNotFound, "organization acme has no rule set version 7"},
		{[]string{"activate", "7", "--org", "unknown"}, failure.ExitNotFound, "unknown"},
		{[]string{"activate", "0", "--org", "acme"}, failure.ExitUsage, "want a number"},
		{[]string{"activate", "sample", "--org", "acme"}, failure.ExitUsage, "want a number"},
		{[]string{"activate", "1"}, failure.ExitUsage, `"org"`},
		{[]string{"list", "--org", "unknown"}, failure.ExitNotFound, "unknown"},
		{[]string{"show", "--org", "acme", "--version", "7"}, failure.ExitNotFound, "no rule set version 7"},
		{[]string{"check", "../../internal/moving/sample/rules.yaml", "--org", "unknown"}, failure.ExitNotFound, "unknown"},
	} {
		r := b.run(append([]string{"rules"}, test.args...)...)
		assert.Equal(t, test.exit, r.exit, "%v: %s", test.args, r.err)
		assert.Contains(t, r.err, test.says)
	}
	// A version that an older program stored and this one cannot read is not books.Change.
	_, err := b.Pool.Exec(t.Context(),
		`INSERT INTO daybook.rule_sets (org_id, version, name, source, sha256) VALUES ('acme', 2, 'old', 'rules: {}', repeat('0', 64))`)
	require.NoError(t, err)
	r := b.run("rules", "activate", "2", "--org", "acme")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "version 2 cannot be used")
}

func TestRulesCheckComparesWithTheChart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	chart := write(t, t.TempDir()+"/chart.csv", "code,name,type\n1000,Bank,asset\n")
	b.ok("accounts", "import", chart, "--org", "acme", "--create")
	path := write(t, t.TempDir()+"/rules.yaml", caseRules)
	r := b.run("rules", "check", path, "--org", "acme")
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	assert.Contains(t, r.err, "organization acme lacks accounts 1200: ")
	var checked struct {
		Valid           bool
		MissingAccounts []string `json:"missing_accounts"`
	}
	b.json(&checked, "rules", "check", path, "--org", "acme")
	assert.True(t, checked.Valid)
	assert.Equal(t, []string{"1200"}, checked.MissingAccounts)
}
