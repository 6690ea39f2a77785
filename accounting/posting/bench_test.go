package posting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// BenchmarkEvaluate posts an invoice of one line and one tax, three entries, with a rule set of
// seven rules.
func BenchmarkEvaluate(b *testing.B) {
	rules, chart := matrix(b)
	doc := invoice()
	doc.Content = models.Content{
		Lines:   []models.Line{{Kind: "item", Net: 10000, Rate: models.MustRate("19")}},
		Taxes:   []models.Tax{{Category: "VAT", Rate: models.MustRate("19"), Amount: 1900}},
		Payable: 11900,
	}
	impact, err := rules.Evaluate(doc, chart)
	require.NoError(b, err)
	require.Len(b, impact.Entries, 3)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Evaluate(doc, chart); err != nil {
			b.Fatal(err)
		}
	}
}
