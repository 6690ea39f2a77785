package posting_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// amountOf evaluates an integer expression over the document by posting it.
func amountOf(t *testing.T, expression string, doc *models.Document) (int64, error) {
	t.Helper()
	rules := compile(t, fmt.Sprintf(`
ruleset: expression
rules:
  - id: r
    when: true
    lines:
      - {id: a, side: debit, account: "1", amount: %q}
      - {id: b, side: credit, account: "1", amount: %q}
      - {id: others, side: debit, account: "1", amount: doc.payable + doc.prepaid + doc.fee + size(doc.lines), if: "false"}
`, expression, expression))
	impact, err := rules.Evaluate(doc, posting.NewAccounts("1"))
	if err != nil || len(impact.Entries) == 0 {
		return 0, err
	}
	if impact.Entries[0].Side == models.Credit {
		return -impact.Entries[0].Amount, nil
	}
	return impact.Entries[0].Amount, nil
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	doc := invoice()
	doc.Content.Attributes = map[string]string{"region": "north"}
	for expression, want := range map[string]int64{
		`doc.payable + doc.prepaid`:         18920,
		`-doc.payable`:                      -16920,
		`doc.total * 25 / 100`:              4730,
		`7`:                                 7,
		`doc.lines[1].net`:                  5000,
		`size(doc.lines) + size(doc.taxes)`: 5,
		`doc.lines.exists(l, l.kind == "shipping") ? 1 : 2`:                                   1,
		`doc.lines.filter(l, l.rate_bp == 700)[0].net`:                                        1000,
		`doc.taxes.all(t, !t.retained) ? 1 : 2`:                                               1,
		`doc.lines[0] == doc.lines[0] && doc.lines[0] != doc.lines[1] ? 1 : 2`:                1,
		`doc.attributes["region"] == "north" ? 1 : 2`:                                         1,
		`doc.attributes.region == "north" ? 1 : 2`:                                            1,
		`"colour" in doc.attributes ? 1 : 2`:                                                  2,
		`has(doc.value_date) ? 1 : 2`:                                                         2,
		`has(doc.settled) ? 1 : 2`:                                                            2,
		`has(doc.prepaid) && !has(doc.fee) ? 1 : 2`:                                           1,
		`doc.issue_date < date("2025-04-01") && doc.issue_date >= date("2025-03-31") ? 1 : 2`: 1,
		`doc.issue_date.getFullYear()`:                                                        2025,
		`doc.number.startsWith("C") ? 1 : 2`:                                                  2,
		`doc.type in ["invoice", "bill"] ? 1 : 2`:                                             1,
	} {
		got, err := amountOf(t, expression, doc)
		require.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
	}
}

func TestExpressionErrors(t *testing.T) {
	t.Parallel()
	for expression, message := range map[string]string{
		`doc.payable * 9223372036854775807`:         "overflow",
		`doc.payable / doc.fee`:                     "division by zero",
		`doc.attributes["colour"] == "red" ? 1 : 2`: `no such key: colour; ask first: "colour" in doc.attributes`,
		`doc.lines[3].net`:                          "index out of bounds: 3",
		`doc.issue_date > date(doc.id) ? 1 : 2`:     "want YYYY-MM-DD",
	} {
		_, err := amountOf(t, expression, invoice())
		e := requireError(t, err, models.CodeDocumentInvalid)
		assert.Contains(t, e.Message, message, expression)
	}
}

// A constant that no document can make right is found when the rules are compiled.
func TestConstantsAreChecked(t *testing.T) {
	t.Parallel()
	for expression, message := range map[string]string{
		`doc.issue_date > date("31.3.2025") ? 1 : 2`:                       `4:99: rule "r", line "a": amount: date "31.3.2025": want YYYY-MM-DD`,
		`date("2025-02-30") > date("2025-01-01") ? 1 : 2`:                  "there is no such day",
		`doc.lines.exists(l, doc.issue_date < date("2025-13-01")) ? 1 : 2`: "there is no such day",
		`doc.lines.exists(l, l.rate == rate("19 %")) ? 1 : 2`:              "want a percentage",
	} {
		_, err := posting.Compile(fmt.Appendf(nil, `
ruleset: constants
rules:
  - {id: r, when: true, lines: [{id: a, side: debit, account: "1", amount: %q}]}`, expression))
		require.ErrorContains(t, err, message, expression)
	}
}

func TestPostingDate(t *testing.T) {
	t.Parallel()
	const source = `
ruleset: dates
rules:
  - {id: r, when: true, date: %q, lines: [{id: a, side: debit, account: "1", amount: doc.fee}]}
`
	rules := compile(t, fmt.Sprintf(source,
		`doc.value_date > date("2025-06-30") ? doc.value_date : doc.issue_date + duration("24h")`))
	zero := invoice()
	zero.Content = models.Content{Zero: true}
	impact, err := rules.Evaluate(zero, nil)
	require.NoError(t, err)
	assert.Equal(t, models.NewDate(2025, time.April, 1), impact.PostingDate)

	rules = compile(t, fmt.Sprintf(source, `doc.issue_date + duration("1h")`))
	_, err = rules.Evaluate(invoice(), nil)
	e := requireError(t, err, models.CodeDocumentInvalid)
	assert.Contains(t, e.Message, "2025-03-31T01:00:00Z; want a day")

	rules = compile(t, fmt.Sprintf(source,
		`doc.issue_date + duration("2190000h") + duration("2190000h") + duration("2190000h") + duration("2190000h")`))
	_, err = rules.Evaluate(invoice(), nil)
	e = requireError(t, err, models.CodeDocumentInvalid)
	assert.Contains(t, e.Message, "the expression gave the date 3024-")
	assert.Contains(t, e.Message, "want one from 1900-01-01 to 2999-12-31")
}

// A comprehension inside a comprehension over a long document would run for minutes; its cost limit
// ends it.
func TestComprehensionCostIsBounded(t *testing.T) {
	t.Parallel()
	doc := invoice()
	for range 2000 {
		doc.Content.Lines = append(doc.Content.Lines, models.Line{Net: 1})
	}
	_, err := amountOf(t, `doc.lines.all(a, doc.lines.all(b, a.net < b.net + 100000)) ? 1 : 2`, doc)
	e := requireError(t, err, models.CodeDocumentInvalid)
	assert.Contains(t, e.Message, "more than 6000000 steps for this document")

	rules := compile(t, `
ruleset: each
rules:
  - {id: r, when: true, lines: [{id: a, side: debit, account: "1", each: doc.lines, amount: 'doc.lines.all(l, l.net <= 100000) ? 0 : 1'}]}
`)
	_, err = rules.Evaluate(doc, nil)
	e = requireError(t, err, models.CodeDocumentInvalid)
	assert.Contains(t, e.Message, "steps for this document")
}

func TestRuleSetIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	want, err := rules.Evaluate(invoice(), chart)
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				got, err := rules.Evaluate(invoice(), chart)
				assert.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
	group.Wait()
}

func TestLongExpressionIsRefused(t *testing.T) {
	t.Parallel()
	_, err := posting.Compile([]byte("ruleset: x\nrules: [{id: r, when: 'true" + strings.Repeat(" && true", 1000) +
		"', lines: [{id: a, side: debit, account: '1', amount: 1}]}]"))
	require.ErrorContains(t, err, "size")
}
