package posting_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/posting"
)

// FuzzCompile: any file compiles or is refused with problems that have a message, and what compiles evaluates.
func FuzzCompile(f *testing.F) {
	matrix, err := os.ReadFile("testdata/matrix.yaml")
	require.NoError(f, err)
	f.Add(matrix)
	f.Add([]byte("ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: '1', amount: doc.payable}]}]"))
	f.Add([]byte("ruleset: x\nrules:\n  - id: r\n    when: |\n      doc.lines.exists(l, l.net > 0)\n    lines: [{id: a, side: debit, account: '1', amount: 1}]"))
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
