package posting_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// FuzzCompile: any file compiles or is refused with problems that have a message, and what compiles
// evaluates.
func FuzzCompile(f *testing.F) {
	matrix, err := os.ReadFile("testdata/matrix.yaml")
	require.NoError(f, err)
	f.Add(matrix)
	f.Add([]byte("ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: '1', amount: " +
		"doc.payable}]}]"))
	f.Add([]byte("ruleset: x\nrules:\n  - id: r\n    when: |\n      doc.lines.exists(l, l.net > 0)\n    lines: [{id: " +
		"a, side: debit, account: '1', amount: 1}]"))
	f.Add([]byte("ruleset: x\nrules:\n  - id: r\n    when: true\n    exchange: {account: '3'}\n    rounding: {account: '4', max_minor: 2}\n    lines:\n" +
		"      - {id: a, side: debit, each: doc.lines, amount: line.net, split: [{account: '1', share: 60}, {account: " +
		"'2', share: 1000000000}]}"))
	f.Add([]byte("ruleset: &a [*a]"))
	f.Add([]byte("? [a]: b"))
	f.Add([]byte("rules: [{lines: [{amount: !!binary x}]}]"))
	f.Fuzz(func(t *testing.T, source []byte) {
		rules, err := posting.Compile(source)
		if err != nil {
			var e *posting.CompileError
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Problems)
			for _, p := range e.Problems {
				require.NotEmpty(t, p.Message)
			}
			return
		}
		checkImpact(t, rules, posting.NewAccounts(rules.Accounts()...), invoice())
	})
}

// FuzzCases: any file of cases is read or refused with problems that have a message, and what is
// read runs.
func FuzzCases(f *testing.F) {
	rules, chart := matrix(f)
	f.Add([]byte(paymentCases))
	f.Add([]byte("cases: [{title: a, document: {type: order}, expect: {error: NO_MATCHING_RULE, message: order, rule: " +
		"x}}]\naccounts: {'1': [EUR]}"))
	f.Add([]byte("cases:\n  - {title: a, document: {currency: EUR, issue_date: 2025-02-30}, expect: {entries: " +
		"[{account: '1', debit: 1, credit: 2, line: a}], posting_date: 0001-01-01}}"))
	f.Add([]byte("ruleset: x\nchart: y\naccounts: {}\ncases: [{title: a, document: {content: {lines: [{net: " +
		"-9223372036854775808}], attributes: {a: b}, settled: {amount: 1, currency: X}}}, expect: {entries: []}}]"))
	f.Fuzz(func(t *testing.T, source []byte) {
		file, err := posting.ParseCases(source)
		if err != nil {
			var e *posting.CompileError
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Problems)
			for _, p := range e.Problems {
				require.NotEmpty(t, p.Message)
			}
			return
		}
		require.NotEmpty(t, file.Cases)
		charts := []posting.Chart{nil, chart}
		if file.Accounts != nil {
			charts = append(charts, file.Accounts)
		}
		for _, c := range charts {
			results := posting.RunCases(rules, c, file.Cases)
			require.Len(t, results, len(file.Cases))
			for i, r := range results {
				require.Equal(t, file.Cases[i].Title, r.Title)
				require.Equal(t, r.Passed, len(r.Differences) == 0)
				require.NotEqual(t, r.Impact == nil, r.Err == nil)
			}
		}
	})
}

// FuzzEvaluate: any document evaluates to balanced entries or to a typed error.
func FuzzEvaluate(f *testing.F) {
	rules, chart := matrix(f)
	seed, err := json.Marshal(invoice())
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte(`{"type":"payment","direction":"in","currency":"EUR","issue_date":"2025-01-01","content":{"amount":9223372036854775807,"fee":-1}}`))
	f.Add([]byte(`{"type":"payout","currency":"USD","issue_date":"2025-01-01","content":{"amount":100,"settled":{"amount":90,"currency":"EUR"}}}`))
	f.Add([]byte(`{"type":"delivery","currency":"EUR","issue_date":"0001-01-01","content":{"lines":[{"kind":"stock","cost":-9223372036854775808}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var doc models.Document
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Skip(errors.Unwrap(err))
		}
		checkImpact(t, rules, chart, &doc)
	})
}
