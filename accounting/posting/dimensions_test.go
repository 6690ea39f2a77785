package posting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

const dimensionRules = `
ruleset: dimensions
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable, dimensions: {cost_centre: '""'}}
      - id: revenue
        side: credit
        account: "4400"
        each: doc.lines
        amount: line.net
        dimensions: {region: '"country" in line.dimensions ? "abroad" : doc.country', kind: line.kind}
      - {id: tax, side: credit, account: "3806", each: doc.taxes, amount: tax.amount}
    rounding: {account: "6969", max_minor: 2}
`

func dimensionDocument() *models.Document {
	return &models.Document{
		Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, time.March, 14),
		Content: models.Content{
			Country: "DE",
			Lines: []models.Line{
				{Kind: "item", Net: 1000, Dimensions: models.Dimensions{"cost_centre": "east", "country": "FR"}},
				{Kind: "item", Net: 500, Dimensions: models.Dimensions{"cost_centre": ""}},
				{Kind: "", Net: 100},
			},
			Taxes: []models.Tax{{Amount: 300}}, Total: 1901, Payable: 1901,
			Dimensions: models.Dimensions{"cost_centre": "sales", "project": "7"},
		},
	}
}

// TestDimensions: those of a line of the document are above those of the document, and those of a
// rule's line above both; an empty text is none.
func TestDimensions(t *testing.T) {
	t.Parallel()
	rules := compile(t, dimensionRules)
	impact, err := rules.Evaluate(dimensionDocument(), posting.NewAccounts("1200", "4400", "3806", "6969"))
	require.NoError(t, err)
	var got []string
	for _, e := range impact.Entries {
		got = append(got, e.RuleLineID+": "+e.Dimensions.String())
	}
	assert.Equal(t, []string{
		"receivable: project=7",
		"revenue: cost_centre=east, country=FR, kind=item, project=7, region=abroad",
		"revenue: kind=item, project=7, region=DE",
		"revenue: cost_centre=sales, project=7, region=DE",
		"tax: cost_centre=sales, project=7",
		"rounding: cost_centre=sales, project=7",
	}, got)
}

func TestDimensionsThatNoEntryCanHave(t *testing.T) {
	t.Parallel()
	rules := compile(t, dimensionRules)
	chart := posting.NewAccounts("1200", "4400", "3806", "6969")
	for name, c := range map[string]struct {
		change func(*models.Content)
		says   string
	}{
		"key":   {func(c *models.Content) { c.Dimensions = models.Dimensions{"Cost centre": "x"} }, "not the key of a dimension"},
		"value": {func(c *models.Content) { c.Lines[1].Dimensions["cost_centre"] = "a\nb" }, "line 2 of the document"},
		"blank": {func(c *models.Content) { c.Dimensions["project"] = " 7" }, "blanks"},
		"long":  {func(c *models.Content) { c.Dimensions["project"] = strings.Repeat("7", 201) }, "at most 200"},
		"rule":  {func(c *models.Content) { c.Lines[0].Kind = "a\tb" }, "dimensions.kind for line 1"},
	} {
		d := dimensionDocument()
		c.change(&d.Content)
		_, err := rules.Evaluate(d, chart)
		var failed *posting.Error
		require.ErrorAs(t, err, &failed, name)
		assert.Equal(t, models.CodeDocumentInvalid, failed.Code, name)
		assert.ErrorContains(t, err, c.says, name)
	}
	for change, says := range map[string]string{
		`kind: line.kind=>kind: line.net`:     "dimensions.kind: the expression gives an integer",
		`kind: line.kind=>Kind: line.kind`:    "Kind",
		`kind: line.kind=>kind: '" a"'`:       "remove the blanks",
		`kind: line.kind=>kind: line.project`: "dimensions.kind",
	} {
		from, to, _ := strings.Cut(change, "=>")
		_, err := posting.Compile([]byte(strings.Replace(dimensionRules, from, to, 1)))
		assert.ErrorContains(t, err, says, change)
	}
}

// TestDimensionsOfJournals: an entry's are above those of its document.
func TestDimensionsOfJournals(t *testing.T) {
	t.Parallel()
	d := &models.Document{Currency: "EUR", IssueDate: models.NewDate(2026, time.March, 14), Content: models.Content{
		Dimensions: models.Dimensions{"cost_centre": "sales"},
		Journal: &models.Journal{Reason: "r", By: "b", Entries: []models.JournalEntry{
			{Account: "1200", Amount: 5, Dimensions: models.Dimensions{"project": "7"}},
			{Account: "9000", Amount: -5, Dimensions: models.Dimensions{"cost_centre": ""}},
		}},
	}}
	chart := posting.NewAccounts("1200", "9000")
	impact, err := posting.Journal(d, chart)
	require.NoError(t, err)
	assert.Equal(t, "cost_centre=sales, project=7", impact.Entries[0].Dimensions.String())
	assert.Nil(t, impact.Entries[1].Dimensions)
	_, err = posting.Journal(d, nil)
	require.ErrorContains(t, err, "not in the chart", "an organization without a chart")
	d.Content.Journal.Entries[1].Dimensions["K"] = "x"
	_, err = posting.Journal(d, chart)
	assert.ErrorContains(t, err, `entry 2: "K" is not the key of a dimension`)
}

// TestCasesOfDimensions: a case says what an entry must have, that it has none, or leaves it open,
// and each expected entry finds the one that fits it alone.
func TestCasesOfDimensions(t *testing.T) {
	t.Parallel()
	const source = `
cases:
  - title: a
    document:
      type: invoice
      direction: out
      currency: EUR
      issue_date: 2026-03-14
      content:
        payable: 20
        lines: [{kind: item, net: 10, dimensions: {project: "7"}}, {net: 10}]
    expect:
      entries:
        - {account: "1200", debit: 20, dimensions: {}}
        - {account: "4400", credit: 10}
        - {account: "4400", credit: 10, dimensions: {project: "7", kind: item}}
`
	rules := compile(t, dimensionRules)
	file := parseCases(t, source)
	result := posting.RunCases(rules, nil, file.Cases)[0]
	assert.True(t, result.Passed, "%v", result.Differences)

	file = parseCases(t, strings.NewReplacer("kind: item}}\n", "kind: other}}\n", "dimensions: {}", "dimensions: {a: b}").Replace(source))
	assert.Equal(t, []string{
		"- 1200 debit 0.20 EUR [a=b]",
		"- 4400 credit 0.10 EUR [kind=other, project=7]",
		"+ 1200 debit 0.20 EUR (line receivable)",
		"+ 4400 credit 0.10 EUR (line revenue)",
	}, posting.RunCases(rules, nil, file.Cases)[0].Differences)
	_, err := posting.ParseCases([]byte(strings.Replace(source, "dimensions: {}", "dimensions: {A: b}", 1)))
	assert.ErrorContains(t, err, "not the key of a dimension")
}
