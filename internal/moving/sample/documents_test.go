package sample_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// TestDocumentsOfTheREADME posts what README.md has a newcomer import, by the rules that it has
// applied before.
func TestDocumentsOfTheREADME(t *testing.T) {
	t.Parallel()
	rules, chart := compiled(t)
	f, err := os.Open("documents.ndjson")
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	balances := map[string]int64{}
	n := 0
	for read, err := range importer.NDJSON(f) {
		require.NoError(t, err)
		d := read.Document
		assert.Equal(t, "org_123", d.OrgID)
		impact, err := rules.Evaluate(&d, chart)
		require.NoError(t, err, d.ID)
		for _, e := range impact.Entries {
			if e.Side == models.Credit {
				e.Amount = -e.Amount
			}
			balances[e.Account] += e.Amount
		}
		n++
	}
	assert.Equal(t, 2, n)
	assert.Equal(t, map[string]int64{"1200": 0, "1360": 11900, "3800": -1900, "4400": -10000}, balances,
		"the invoice is paid")

	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), "daybook import ndjson internal/moving/sample/documents.ndjson")
}
