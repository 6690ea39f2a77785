package posting_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/models"
)

// TestDocumentationExamples runs docs/rules.md: each json block is a document, posted by the yaml
// block before it, with the entries or the error of the text block after it; a yaml block with
// cases tests the rules before it.
func TestDocumentationExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/rules.md")
	require.NoError(t, err)
	parts := regexp.MustCompile("(?ms)^### (\\d+\\. .*?)$|^```(yaml|json|text)\n(.*?)```").FindAllSubmatch(page, -1)
	var rules *posting.RuleSet
	var got string
	var headings []string
	results := map[string]int{} // by heading
	cases := 0
	for _, p := range parts {
		if len(p[1]) > 0 {
			headings = append(headings, string(p[1]))
			continue
		}
		switch body := p[3]; string(p[2]) {
		case "yaml":
			if strings.Contains("\n"+string(body), "\ncases:\n") {
				file := parseCases(t, string(body))
				for _, r := range posting.RunCases(rules, file.Accounts, file.Cases) {
					assert.True(t, r.Passed, "%s: %v", r.Title, r.Differences)
					cases++
				}
				continue
			}
			rules, err = posting.Compile(body)
			require.NoError(t, err, "%s", body)
		case "json":
			var doc models.Document
			require.NoError(t, json.Unmarshal(body, &doc), "%s", body)
			impact, err := rules.Evaluate(&doc, posting.NewAccounts(rules.Accounts()...))
			if e, ok := errors.AsType[*posting.Error](err); ok {
				got = fmt.Sprintf("%s: %s\n", e.Code, e.Message)
				continue
			}
			require.NoError(t, err)
			got = entries(impact)
		case "text":
			require.NotEmpty(t, headings)
			heading := headings[len(headings)-1]
			assert.Equal(t, string(body), got, heading)
			results[heading]++
		}
	}
	require.Len(t, headings, 12)
	for i, h := range headings {
		assert.True(t, strings.HasPrefix(h, fmt.Sprint(i+1, ".")), h)
		assert.Positive(t, results[h], "%s has no result", h)
	}
	assert.Equal(t, 4, cases)
}

// TestInvoiceOfTheImport posts the invoice that docs/import.md shows by the first rules of
// docs/rules.md, as a reader does who begins with both.
func TestInvoiceOfTheImport(t *testing.T) {
	t.Parallel()
	sets, err := pages.Of("docs/rules.md", "yaml")
	require.NoError(t, err)
	require.NotEmpty(t, sets)
	rules, err := posting.Compile([]byte(sets[0].Text))
	require.NoError(t, err)
	documents, err := pages.Of("docs/import.md", "json")
	require.NoError(t, err)
	require.NotEmpty(t, documents)
	var invoice models.Document
	require.NoError(t, json.Unmarshal([]byte(documents[0].Text), &invoice))
	impact, err := rules.Evaluate(&invoice, posting.NewAccounts(rules.Accounts()...))
	require.NoError(t, err)
	assert.Equal(t, "receivable 0 1200 debit 10710 EUR\nrevenue 1 4400 credit 10000 EUR\n"+
		"revenue 2 4700 debit 1000 EUR\ntax 1 3806 credit 1710 EUR\n", entries(impact))
}

// TestRulesOfOpenItems compiles the rules that docs/open-items.md shows of a rule set.
func TestRulesOfOpenItems(t *testing.T) {
	t.Parallel()
	blocks, err := pages.Of("docs/open-items.md", "yaml")
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		_, err := posting.Compile([]byte("ruleset: shop\n" + block.Text))
		require.NoError(t, err, block.Text)
	}
}
