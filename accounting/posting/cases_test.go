package posting_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

const paymentCases = `
ruleset: matrix.yaml
accounts: {"1360": [], "6855": [EUR, USD], "1200": []}
cases:
  - title: A payment whose fee the provider keeps
    document:
      {type: payment, direction: in, currency: EUR, issue_date: 2025-03-31, value_date: 2025-04-02, content: {amount: 10000, fee: 290}}
    expect:
      rule: payment
      posting_date: 2025-04-02
      entries:
        - {account: "1200", credit: 10000, line: ar}
        - {account: "1360", debit: 9710}
        - {account: "6855", debit: 290, currency: EUR}
  - title: A fee in a currency that the account does not take
    document: {type: payment, direction: in, currency: CHF, issue_date: 2025-03-31, content: {amount: 10000, fee: 290}}
    expect: {error: UNKNOWN_ACCOUNT, message: does not take CHF, rule: payment}
  - title: A payment of nothing
    document: {type: payment, direction: in, currency: EUR, issue_date: 2025-03-31, content: {amount: 0}}
    expect: {entries: []}
`

func parseCases(tb testing.TB, source string) *posting.CaseFile {
	tb.Helper()
	file, err := posting.ParseCases([]byte(source))
	require.NoError(tb, err)
	return file
}

func TestParseCases(t *testing.T) {
	t.Parallel()
	file := parseCases(t, paymentCases)
	assert.Equal(t, "matrix.yaml", file.RuleSet)
	assert.Equal(t, posting.Accounts{"1360": nil, "6855": {"EUR", "USD"}, "1200": nil}, file.Accounts)
	require.Len(t, file.Cases, 3)
	first := file.Cases[0]
	assert.Equal(t, "A payment whose fee the provider keeps", first.Title)
	assert.Equal(t, posting.Place{Line: 5, Column: 5}, first.Place)
	assert.Equal(t, int64(290), first.Document.Content.Fee)
	assert.Equal(t, "2025-04-02", first.Document.ValueDate.String())
	assert.Equal(t, []posting.ExpectedEntry{
		{Account: "1200", Side: models.Credit, Amount: 10000, Currency: "EUR", RuleLineID: "ar"},
		{Account: "1360", Side: models.Debit, Amount: 9710, Currency: "EUR"},
		{Account: "6855", Side: models.Debit, Amount: 290, Currency: "EUR"},
	}, first.Expect.Entries)
	assert.Equal(t, models.CodeUnknownAccount, file.Cases[1].Expect.Error)
	file = parseCases(t, "cases: [{title: a, document: {currency: EUR, issue_date: 2025-03-31}, expect: {entries: "+
		"[{account: '1', debit: 1, currency: USD}]}}]")
	assert.Equal(t, "USD", file.Cases[0].Expect.Entries[0].Currency)
}

// A source marks with § where the first problem must be reported.
func TestParseCasesRefuses(t *testing.T) {
	t.Parallel()
	const document = "document: {currency: EUR, issue_date: 2025-03-31}"
	tests := []struct{ name, source, message string }{
		{"nothing", "§", "the file is empty"},
		{"no cases", "§ruleset: x", `missing key "cases"`},
		{"unknown key", "cases: [{title: a, " + document + ", expect: {entries: []}, §when: b}]", `unknown key "when"`},
		{
			"unknown field", "cases: [{title: a, document: {content: {§payabel: 1}}, expect: {entries: []}}]",
			`unknown key "payabel"`,
		},
		{
			"decimal amount", "cases: [{title: a, document: {content: {payable: §1.5}}, expect: {entries: []}}]",
			"not a whole number",
		},
		{
			"octal amount", "cases: [{title: a, " + document + ", expect: {entries: [{account: '1', debit: §010}]}}]",
			"010 is not a plain number",
		},
		{
			"octal amount of a document", "cases: [{title: a, document: {content: {payable: §010}}, expect: {entries: []}}]",
			"010 is not a plain number",
		},
		{"too great an amount", "cases: [{title: a, document: {content: {payable: §9223372036854775808}}, expect: " +
			"{entries: []}}]", "not a plain whole number"},
		{
			"no such day", "cases: [{title: a, document: {issue_date: §2025-02-30}, expect: {entries: []}}]",
			"there is no such day",
		},
		{
			"account as a number", "cases: [{title: a, " + document + ", expect: {entries: [{account: §1200, debit: 1}]}}]",
			"put it in quotes",
		},
		{
			"both sides", "cases: [{title: a, " + document + ", expect: {entries: [§{account: '1', debit: 1, credit: 1}]}}]",
			"either a debit or a credit",
		},
		{
			"no side", "cases: [{title: a, " + document + ", expect: {entries: [§{account: '1'}]}}]",
			"either a debit or a credit",
		},
		{"zero amount", "cases: [{title: a, " + document + ", expect: {entries: [{account: '1', debit: §0}]}}]", "minimum"},
		{"no such currency", "cases: [{title: a, " + document +
			", expect: {entries: [{account: '1', debit: 1, currency: §EUX}]}}]", "no ISO 4217 code"},
		{"no such currency of an account", "accounts: {'1': [EUR, §EUX]}\ncases: [{title: a, " + document +
			", expect: {entries: []}}]", "no ISO 4217 code"},
		{"expects nothing", "cases: [{title: a, " + document + ", expect: §{rule: a}}]", "expect entries, or an error"},
		{"expects both", "cases: [{title: a, " + document + ", expect: §{error: UNBALANCED, entries: []}}]", "not both"},
		{
			"message of no error", "cases: [{title: a, " + document + ", expect: §{entries: [], message: b}}]",
			"message belongs to an error",
		},
		{"unknown error", "cases: [{title: a, " + document + ", expect: {error: §BROKEN}}]", "UNBALANCED"},
		{"title twice", "cases:\n  - {title: a, " + document + ", expect: {entries: []}}\n  - {title: §a, " + document +
			", expect: {entries: []}}", "is taken"},
		{
			"chart and accounts", "chart: x\n§accounts: {}\ncases: [{title: a, " + document + ", expect: {entries: []}}]",
			"either chart or accounts",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(test.source, "§")
			want := posting.Place{
				Line:   strings.Count(before, "\n") + 1,
				Column: len(before) - strings.LastIndex(before, "\n"),
			}
			_, err := posting.ParseCases([]byte(before + after))
			var e *posting.CompileError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, want, e.Problems[0].Place, "%v", err)
			assert.Contains(t, err.Error(), test.message)
			assert.Contains(t, err.Error(), "test cases: ")
		})
	}
}

func TestRunCases(t *testing.T) {
	t.Parallel()
	rules, _ := matrix(t)
	file := parseCases(t, paymentCases)
	for _, r := range posting.RunCases(rules, file.Accounts, file.Cases) {
		assert.True(t, r.Passed, "%s: %v", r.Title, r.Differences)
	}
}

func TestRunCasesShowsDifferences(t *testing.T) {
	t.Parallel()
	rules, _ := matrix(t)
	const payment = "document: {type: payment, direction: in, currency: EUR, issue_date: 2025-03-31, content: {amount: " +
		"10000, fee: 290}}"
	for _, test := range []struct{ name, expect, want string }{
		{
			"other entries", `{entries: [{account: "1360", debit: 9710}, {account: "6855", debit: 291}, {account: "1200", credit: 10000, line: psp}]}`,
			"- 6855 debit 2.91 EUR\n- 1200 credit 100.00 EUR (line psp)\n+ 6855 debit 2.90 EUR (line fee)\n+ 1200 credit " +
				"100.00 EUR (line ar)",
		},
		{
			"too few", `{entries: [{account: "1360", debit: 9710}, {account: "6855", debit: 290}]}`,
			"+ 1200 credit 100.00 EUR (line ar)",
		},
		{"one twice", `{entries: [{account: "1360", debit: 9710}, {account: "1360", debit: 9710, line: psp}, {account: "6855", debit: 290}, {account: "1200", credit: 10000}]}`, "- 1360 debit 97.10 EUR"},
		{"another rule", `{rule: refund, entries: [{account: "1360", debit: 9710}, {account: "6855", debit: 290}, {account: "1200", credit: 10000}]}`, `the rule is "payment", want "refund"`},
		{"another day", `{posting_date: 2025-04-01, entries: [{account: "1360", debit: 9710}, {account: "6855", debit: 290}, {account: "1200", credit: 10000}]}`, "the posting date is 2025-03-31, want 2025-04-01"},
		{"no error", `{error: UNBALANCED}`, "it posts by the rule \"payment\", want the error UNBALANCED\n+ 1360 debit " +
			"97.10 EUR (line psp)\n+ 6855 debit 2.90 EUR (line fee)\n+ 1200 credit 100.00 EUR (line ar)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := parseCases(t, "cases: [{title: a, "+payment+", expect: "+test.expect+"}]")
			results := posting.RunCases(rules, nil, file.Cases)
			require.Len(t, results, 1)
			assert.False(t, results[0].Passed)
			assert.Equal(t, test.want, strings.Join(results[0].Differences, "\n"))
		})
	}

	file := parseCases(t, `
cases:
  - {title: an error, document: {type: order}, expect: {entries: []}}
  - {title: another error, document: {type: order}, expect: {error: UNBALANCED}}
  - {title: another message, document: {type: order}, expect: {error: NO_MATCHING_RULE, message: sale}}
  - {title: another rule, document: {type: refund, currency: EUR}, expect: {error: DOCUMENT_INVALID, rule: sale}}
`)
	results := posting.RunCases(rules, nil, file.Cases)
	for i, want := range []string{
		"it fails with NO_MATCHING_RULE: no rule matches",
		"the error is NO_MATCHING_RULE, want UNBALANCED: ", `the message lacks "sale": `,
		`the rule is "refund", want "sale"`,
	} {
		require.Len(t, results[i].Differences, 1)
		assert.Contains(t, results[i].Differences[0], want)
		assert.Error(t, results[i].Err)
	}
}
