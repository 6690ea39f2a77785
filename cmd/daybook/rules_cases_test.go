package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pages"
)

const caseRules = `
ruleset: paid
rules:
  - id: paid
    when: doc.type == "payment"
    lines:
      - {id: bank, side: debit, account: "1000", amount: doc.amount}
      - {id: receivable, side: credit, account: "1200", amount: doc.amount}
`

const caseFile = `
ruleset: rules.yaml
cases:
  - title: A payment
    document: {type: payment, currency: EUR, issue_date: 2025-03-31, content: {amount: 100}}
    expect: {rule: paid, entries: [{account: "1000", debit: 100}, {account: "1200", credit: 100}]}
  - title: A payment that is too small
    document: {type: payment, currency: EUR, issue_date: 2025-03-31, content: {amount: 100}}
    expect: {entries: [{account: "1000", debit: 120}, {account: "1200", credit: 100}]}
`

func TestRulesTest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../internal/moving/sample/cases/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	r := call(t.Context(), "", append([]string{"rules", "test"}, files...)...)
	assert.Equal(t, failure.ExitOK, r.exit, r.out+r.err)
	assert.Contains(t, r.out, "  ok    A credit note mirrors the invoice\n")
	assert.Contains(t, r.out, " cases, 0 failed\n")
}

func TestRulesTestShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/rules.yaml", caseRules)
	cases := write(t, dir+"/cases.yaml", caseFile)
	r := call(t.Context(), "", "rules", "test", cases)
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Equal(t, cases+`, rules `+dir+`/rules.yaml
  ok    A payment
  FAIL  A payment that is too small (7:5)
          - 1000 debit 1.20 EUR
          + 1000 debit 1.00 EUR (line bank)
2 cases, 1 failed
`, r.out)
	assert.Equal(t, "daybook: 1 of 2 cases failed\n", r.err)

	r = call(t.Context(), "", "rules", "test", cases, "--json")
	assert.Equal(t, failure.ExitFailure, r.exit)
	var said struct {
		Cases, Failed int
		Files         []books.TestedFile
	}
	require.NoError(t, camel.Unmarshal([]byte(r.out), &said), r.out)
	assert.Equal(t, 2, said.Cases)
	assert.Equal(t, 1, said.Failed)
	require.Len(t, said.Files, 1)
	assert.Equal(t, []string{"- 1000 debit 1.20 EUR", "+ 1000 debit 1.00 EUR (line bank)"},
		said.Files[0].Cases[1].Differences)

	chart := write(t, dir+"/chart.csv", "code,name,type\n1200,Receivables,asset\n")
	r = call(t.Context(), "", "rules", "test", cases, "--chart", chart)
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "it fails with UNKNOWN_ACCOUNT")
}

func TestRulesTestRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/broken.yaml",
		"ruleset: x\nrules: [{id: r, when: tru, lines: [{id: a, side: debit, account: '1', amount: 1}]}]")
	const one = "cases: [{title: a, document: {type: x}, expect: {error: NO_MATCHING_RULE}}]\n"
	for name, test := range map[string]struct {
		cases, says string
		args        []string
		exit        int
	}{
		"no rules named": {one, "names no rule set", nil, failure.ExitUsage},
		"no such rules":  {"ruleset: nowhere.yaml\n" + one, "nowhere.yaml", nil, failure.ExitNotFound},
		"broken rules": {
			"ruleset: broken.yaml\n" + one,
			"broken.yaml: rule set: 2:23: rule \"r\": when: undeclared reference to 'tru'", nil, failure.ExitUsage,
		},
		"broken cases": {"ruleset: x\ncases:\n  - {title: a}\n", "test cases: 3:5: missing key", nil, failure.ExitUsage},
		"no such chart": {
			"ruleset: broken.yaml\nchart: nowhere.csv\n" + one, "nowhere.csv",
			[]string{"--rules", "../../internal/moving/sample/rules.yaml"},
			failure.ExitNotFound,
		},
		"rules by a flag": {
			"ruleset: nowhere.yaml\n" + one, "",
			[]string{"--rules", "../../internal/moving/sample/rules.yaml"},
			failure.ExitOK,
		},
	} {
		path := write(t, filepath.Join(dir, filepath.Base(t.Name())+".yaml"), test.cases)
		r := call(t.Context(), "", append([]string{"rules", "test", path}, test.args...)...)
		assert.Equal(t, test.exit, r.exit, "%s: %s", name, r.err)
		assert.Contains(t, r.err, test.says, name)
	}
	assert.Equal(t, failure.ExitUsage, call(t.Context(), "", "rules", "test").exit)
	r := call(t.Context(), one, "rules", "test", "-", "--rules", "../../internal/moving/sample/rules.yaml")
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
}

// TestCasesOfThePage has a case fail as docs/rules.md shows it.
func TestCasesOfThePage(t *testing.T) {
	t.Parallel()
	sessions, err := pages.Of("docs/rules.md", pages.Console)
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	dir := t.TempDir() + "/"
	write(t, dir+"rules.yaml", `
ruleset: shop
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: revenue, side: credit, account: "4400", amount: doc.payable}
  - id: export
    when: doc.country != "DE"
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: revenue, side: credit, account: "8125", amount: doc.payable}
`)
	write(t, dir+"cases.yaml", `ruleset: rules.yaml
cases:
  - title: A sale at home
    document: {type: invoice, currency: EUR, issue_date: 2025-03-31, content: {country: DE, payable: 10000}}
    expect: {entries: [{account: "1200", debit: 12000}, {account: "4400", credit: 10000}]}
  - title: An export has two rules
    document: {type: invoice, currency: EUR, issue_date: 2025-03-31, content: {country: SE, payable: 10000}}
    expect: {error: AMBIGUOUS_RULE}
`)
	r := call(t.Context(), "", "rules", "test", dir+"cases.yaml")
	assert.Equal(t, sessions[0].Outputs()[0], strings.ReplaceAll(r.out, dir, ""))
}
