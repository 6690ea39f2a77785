package sample_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/models"
)

const onlineRetail = "../../../../shared/data/online-retail.tar.xz"

func onlineRetailCompiled(t *testing.T) (*importer.Mapping, *posting.RuleSet, posting.Chart) {
	t.Helper()
	mapping, err := importer.ParseMapping(sample.OnlineRetailMapping())
	require.NoError(t, err)
	rules, err := posting.Compile(sample.OnlineRetailRules())
	require.NoError(t, err)
	return mapping, rules, posting.ChartOf(sample.OnlineRetailChart())
}

func TestOnlineRetailChart(t *testing.T) {
	t.Parallel()
	_, rules, chart := onlineRetailCompiled(t)
	used := rules.Accounts()
	for _, code := range used {
		assert.True(t, chart.HasAccount(code), "the rules post to %s, which the chart lacks", code)
	}
	for _, a := range sample.OnlineRetailChart() {
		assert.Contains(t, used, a.Code, "the chart has an account that no rule posts to")
	}
	assert.Contains(t, string(sample.OnlineRetailChartCSV()), "code,name,type,role,section\n")
}

// TestOnlineRetail imports and posts every document of the data set, and compares each balance with
// those of a script in another language that reads the same archive.
func TestOnlineRetail(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(onlineRetail); err != nil {
		t.Skipf("the data set is not at %s", onlineRetail)
	}
	mapping, rules, chart := onlineRetailCompiled(t)
	sources, err := importer.FindSources([]string{onlineRetail}, ".csv")
	require.NoError(t, err)
	documents, err := importer.OpenCSV(t.Context(), mapping, "shop", sources.All)
	require.NoError(t, err)
	assert.Equal(t, 25_900, documents.Count())

	types := map[models.DocumentType]int{}
	balances := map[string]map[string]int64{} // by document and account, debit positive
	var withEntries, lines, longest int
	var payable int64
	for d, err := range documents.Documents(t.Context()) {
		require.NoError(t, err, d.Source)
		doc := d.Document
		impact, err := rules.Evaluate(&doc, chart)
		require.NoError(t, err, d.Source)
		types[doc.Type]++
		lines += len(doc.Content.Lines)
		longest = max(longest, len(doc.Content.Lines))
		own := map[string]int64{}
		for _, e := range impact.Entries {
			own[e.Account] += signed(e.Side, e.Amount)
		}
		if len(impact.Entries) > 0 {
			withEntries++
		}
		_, twice := balances[doc.ID]
		require.False(t, twice, "%s: each id stands for one document", d.Source)
		balances[doc.ID] = own
		assert.Equal(t, "derived", doc.Content.Attributes["totals"])
		side := models.Debit
		if doc.Type == models.DocumentCreditNote {
			side = models.Credit
		}
		payable += signed(side, doc.Content.Payable)
	}
	assert.Equal(t, map[models.DocumentType]int{"invoice": 22_061, "credit_note": 3_836, "adjustment": 3}, types)
	assert.Equal(t, 541_909, lines)
	assert.Equal(t, 1_114, longest)
	assert.Equal(t, 23_798, withEntries)
	var receivable, all int64
	for _, own := range balances {
		for account, amount := range own {
			all += amount
			if account == "1200" {
				receivable += amount
			}
		}
	}
	assert.Equal(t, int64(974_774_793), receivable, "the net total is 9,747,747.93 GBP")
	assert.Equal(t, receivable, payable)
	assert.Zero(t, all)
	t.Run("as an independent script has it", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, withoutZeros(scripted(t)), withoutZeros(balances))
	})
}

// scripted returns the balances that the script finds.
func scripted(t *testing.T) map[string]map[string]int64 {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	output, err := exec.CommandContext(t.Context(), python, "testdata/online_retail.py", onlineRetail).Output()
	require.NoError(t, err)
	balances := map[string]map[string]int64{}
	require.NoError(t, json.Unmarshal(output, &balances))
	return balances
}

// withoutZeros leaves out accounts whose entries cancel out.
func withoutZeros(balances map[string]map[string]int64) map[string]map[string]int64 {
	for _, own := range balances {
		for account, amount := range own {
			if amount == 0 {
				delete(own, account)
			}
		}
	}
	return balances
}

func signed(side models.Side, amount int64) int64 {
	if side == models.Credit {
		return -amount
	}
	return amount
}
