package posting_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	rules, _ := matrix(t)
	assert.Equal(t, "demo-de", rules.Name())
	assert.Equal(t, []string{
		"1000", "1140", "1200", "1360", "1406", "1600", "3250", "3801", "3806", "4125", "4300", "4400", "4910",
		"5000", "6300", "6855", "6960", "6969",
	}, rules.Accounts())
	rules.Accounts()[0] = "changed"
	assert.Equal(t, "1000", rules.Accounts()[0])
}

func TestSchemaIsJSON(t *testing.T) {
	t.Parallel()
	assert.True(t, json.Valid(posting.Schema()))
	assert.True(t, json.Valid(posting.CaseSchema()))
}

func TestCompileReportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := posting.Compile([]byte(`ruleset: broken
colour: blue
maps:
  unused:
    - {when: true, account: "1"}
rules:
  - id: sale
    when: doc.typ == "invoice"
    lines:
      - {id: a, side: left, account: "1", amount: doc.payable}
      - id: b
        side: credit
        map: nowhere
        amount: |
          doc.payable +
            doc.nothing
`))
	var e *posting.CompileError
	require.ErrorAs(t, err, &e)
	type problem struct {
		place, rule, line string
	}
	var got []problem
	for _, p := range e.Problems {
		got = append(got, problem{p.Place.String(), p.Rule, p.RuleLine})
	}
	assert.Equal(t, []problem{
		{"2:1", "", ""},
		{"4:3", "", ""},
		{"8:14", "sale", ""},
		{"10:23", "sale", "a"},
		{"13:14", "sale", "b"},
		{"16:16", "sale", "b"},
	}, got, "%v", err)
}

// A source marks with § where the first problem must be reported.
func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	const rule = "ruleset: x\nrules:\n  - {id: r, when: true, lines: [{id: a, side: debit, account: '1', amount: "
	tests := []struct{ name, source, message string }{
		{"nothing", "§", "the file is empty"},
		{"only a comment", "§# nothing\n", "the file is empty"},
		{"not YAML", "§ruleset: [", "not valid YAML"},
		{"a list", "§- a", "the rule set is of type array, want object"},
		{"two documents", "ruleset: x\n§---\nruleset: y", "second YAML document"},
		{"alias", "ruleset: &a x\nrules: §*a", "aliases are not allowed"},
		{"duplicate key", "ruleset: x\n§ruleset: y\nrules: []", "a second time"},
		{"float", rule + "§1.5}]}", "not a whole number"},
		{"octal amount", rule + "§010}]}", "010 is not a plain number"},
		{"octal limit", rule + "1}], rounding: {account: '1', max_minor: §010}}", "010 is not a plain number"},
		{"limit as a fraction", rule + "1}], rounding: {account: '1', max_minor: §1.0}}", "not a whole number"},
		{"share in another base", "ruleset: x\nrules:\n  - {id: r, when: true, lines: [{id: a, side: debit, amount: 1, " +
			"split: [{account: '1', share: §0x10}]}]}", "0x10 is not a plain number"},
		{"bool amount", rule + "§doc.payable > 0}]}", "the expression gives bool; want an integer"},
		{"string amount", rule + "§doc.number}]}", "the expression gives string; want an integer"},
		{"dynamic amount", rule + "§dyn(1)}]}", "the expression gives dyn"},
		{"double amount", rule + "§int(double(doc.payable) * 0.5)}]}", "floating point"},
		{"unknown field", rule + "doc§.payabel}]}", "there is no field payabel; doc has org_id"},
		{"unknown field in quotes", rule + "'doc§.payabel'}]}", "there is no field payabel"},
		{"unknown variable", rule + "§line.net}]}", "the variables here are: doc"},
		{"object", rule + "§'daybook.Money{amount: 1}.amount'}]}", "rules only read"},
		{
			"account is an expression",
			strings.Replace(rule, "account: '1'", "each: doc.lines, account: §line.code", 1) + "1}]}",
			"account takes an alias or the code of an account, and line.code is an expression; an account that depends on " +
				"the document is determined by a map",
		},
		{
			"account is an expression of as",
			strings.Replace(rule, "account: '1'", "each: doc.lines, as: x, account: §x.code", 1) + "1}]}",
			"x.code is an expression",
		},
		{
			"account is an expression without each", strings.Replace(rule, "'1'", "§line.code", 1) + "1}]}",
			"line.code is an expression",
		},
		{
			"account is an attribute", strings.Replace(rule, "'1'", "§'doc.attributes[\"account\"]'", 1) + "1}]}",
			"is an expression",
		},
		{
			"account is a choice", strings.Replace(rule, "'1'", "§'doc.total > 0 ? \"1\" : \"2\"'", 1) + "1}]}",
			"is an expression",
		},
		{"alias is an expression", "ruleset: x\naccounts: {a: §doc.number}\nrules: [{id: r, when: true, lines: [{id: a, " +
			"side: debit, account: a, amount: 1}]}]", "doc.number is an expression"},
		{"account of a row is an expression", "ruleset: x\nmaps: {m: [{when: true, account: §line.code}]}\nrules: [{id: " +
			"r, when: true, lines: [{id: a, side: debit, map: m, amount: 1}]}]", "line.code is an expression"},
		{"account of a part is an expression", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, " +
			"amount: 1, split: [{account: §doc.number, share: 1}]}]}]", "doc.number is an expression"},
		{
			"account of rounding is an expression", "ruleset: x\nrules: [{id: r, when: true, rounding: {account: " +
				"§doc.number, max_minor: 1}, lines: [{id: a, side: debit, account: '1', amount: 1}]}]",
			"doc.number is an expression",
		},
		{"limit is an expression", "ruleset: x\nrules: [{id: r, when: true, rounding: {account: '1', max_minor: " +
			"§doc.total}, lines: [{id: a, side: debit, account: '1', amount: 1}]}]", "want integer; it is no expression"},
		{
			"side is an expression", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: §'doc.total > 0 ? debit " +
				": credit', account: '1', amount: 1}]}]",
			"want debit or credit; it is no expression: a negative amount stands on the other side by itself",
		},
		{
			"each is an expression", rule + "1, each: §'doc.lines.filter(l, l.net > 0)'}]}",
			"want doc.lines or doc.taxes; it is no expression: if leaves elements out",
		},
		{"negate is an expression", "ruleset: x\nrules: [{id: r, when: true, negate: §doc.total < 0, lines: [{id: a, " +
			"side: debit, account: '1', amount: 1}]}]", "want boolean; it is no expression"},
		{"map is an expression", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, map: §'line.net > " +
			"0 ? \"a\" : \"b\"', amount: 1}]}]", "it takes the name of a map"},
		{"currency without quotes", rule + "1, currency: §EUR}]}", "a currency is a text within the expression: '\"EUR\"'"},
		{"no such currency", rule + "1, currency: §'\"EUX\"'}]}", `currency: "EUX" is no ISO 4217 code`},
		{"gold as a currency", rule + "1, currency: §'\"XAU\"'}]}", "currency: XAU stands for gold and has no minor unit"},
		{"date without quotes", "ruleset: x\nrules: [{id: r, when: true, date: §2025-01-01, lines: [{id: a, side: debit, " +
			"account: '1', amount: 1}]}]", "want a date, such as doc.value_date or date(\"2025-07-01\")"},
		{
			"no amount", "ruleset: x\nrules: [{id: r, when: true, lines: [§{id: a, side: debit, account: '1'}]}]",
			`missing key "amount"`,
		},
		{"account and map", rule + "1, map: §m}]}\nmaps: {m: [{when: true, account: '2'}]}", "either an account or a map"},
		{
			"no account", "ruleset: x\nrules: [{id: r, when: true, lines: [§{id: a, side: debit, amount: 1}]}]",
			"names no account",
		},
		{"as without each", rule + "1, as: §l}]}", "add each or remove as"},
		{"as is doc", rule + "1, each: doc.lines, as: §doc}]}", "choose another name"},
		{"as is a word of CEL", rule + "1, each: doc.lines, as: §in}]}", "choose another name"},
		{"rounding line id", "ruleset: x\nrules: [{id: r, when: true, lines: [§{id: rounding, side: debit, account: '1', " +
			"amount: 1}]}]", "kept for the rounding entry"},
		{"exchange line id", "ruleset: x\nrules: [{id: r, when: true, lines: [§{id: exchange, side: debit, account: '1', " +
			"amount: 1}]}]", "kept for the exchange entry"},
		{"year-end line id", "ruleset: x\nrules: [{id: r, when: true, lines: [§{id: year-end, side: debit, account: '1', " +
			"amount: 1}]}]", `the line id "year-end" is kept for year-end closes`},
		{"line id of what is posted elsewhere", "ruleset: x\nrules: [{id: r, when: true, lines: [§{id: posted-elsewhere, side: debit, " +
			"account: '1', amount: 1}]}]", "kept for mirrors of what another system has posted"},
		{"exchange without account", "ruleset: x\nrules: [{id: r, when: true, exchange: §{}, lines: [{id: a, side: " +
			"debit, account: '1', amount: 1}]}]", `missing key "account"`},
		{"account and split", rule + "1, split: §[{account: '1', share: 1}]}]}", "either an account or a map or a split"},
		{
			"map and split", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, map: §m, " +
				"split: [{account: '1', share: 1}]}]}]\nmaps: {m: [{when: true, account: '2'}]}",
			"either an account or a map or a split",
		},
		{
			"empty split", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, split: §[]}]}]",
			"minItems",
		},
		{"share of zero", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, split: " +
			"[{account: '1', share: §0}]}]}]", "minimum"},
		{"negative share", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, split: " +
			"[{account: '1', share: §-1}]}]}]", "minimum"},
		{"share with decimals", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, split: " +
			"[{account: '1', share: §33.3}]}]}]", "not a whole number"},
		{"constant share in quotes", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, " +
			"split: [{account: '1', share: §'0'}]}]}]", "a constant share is from 1 to 1000000000"},
		{"share of another type", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, " +
			"split: [{account: '1', share: §doc.number}]}]}]", "share: the expression gives string; want an integer"},
		{
			"share without account",
			"ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, amount: 1, split: [§{share: 1}]}]}]",
			`missing key "account"`,
		},
		{"rule id twice", rule + "1}]}\n  - §{id: r, when: false, like: r}", "is taken by the rule at 3:5"},
		{"line id twice", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: '1', amount: " +
			"1}, §{id: a, side: credit, account: '1', amount: 1}]}]", `the line id "a" is taken`},
		{
			"like beside lines", rule +
				"1}]}\n  - {id: s, when: false, like: §r, lines: [{id: a, side: debit, account: '1', amount: 1}]}",
			"either lines or like",
		},
		{"like an unknown rule", "ruleset: x\nrules: [{id: r, when: true, like: §s}]", `no rule "s"`},
		{"like itself", "ruleset: x\nrules: [{id: r, when: true, like: §r}]", "like itself"},
		{"no lines", "ruleset: x\nrules: [§{id: r, when: true}]", "posts nothing"},
		{"number as account", "ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: §1, amount: " +
			"1}]}]", "put it in quotes"},
		{"date is a string", "ruleset: x\nrules: [{id: r, when: true, date: §'\"2025-01-01\"', lines: [{id: a, side: " +
			"debit, account: '1', amount: 1}]}]", "want a date"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(test.source, "§")
			want := posting.Place{
				Line:   strings.Count(before, "\n") + 1,
				Column: len(before) - strings.LastIndex(before, "\n"),
			}
			_, err := posting.Compile([]byte(before + after))
			var e *posting.CompileError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, want, e.Problems[0].Place, "%v", err)
			assert.Contains(t, err.Error(), test.message)
		})
	}
}

// The codes of accounts are texts of any kind.
func TestCodesAreNoExpressions(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"4400", "12.50", "1200-01", "DE.4400", "Assets:Bank", "tax.vat", "doc", "half_up",
		"Sales (19 %)", "a+b", "1200[1]", "what?",
	} {
		rules := compile(t, "\nruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: '"+code+
			"', amount: 1}]}]")
		assert.Equal(t, []string{code}, rules.Accounts())
	}
}

func TestCompileLikeOfLike(t *testing.T) {
	t.Parallel()
	_, err := posting.Compile([]byte(`ruleset: x
rules:
  - {id: a, when: true, lines: [{id: l, side: debit, account: '1', amount: 1}]}
  - {id: b, when: true, like: a}
  - {id: c, when: true, like: b}
`))
	assert.EqualError(t, err,
		`rule set: 5:31: rule "c": the rule "b" is itself like another; name the one that has the lines`)
}
