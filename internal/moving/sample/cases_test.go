package sample_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
)

// TestCases runs the test cases of the sample rules, as `daybook rules test
// internal/moving/sample/cases/*.yaml` does.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("cases/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	_, chart := compiled(t)
	used := map[string]bool{}
	for _, path := range files {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := posting.ParseCases(source)
		require.NoError(t, err, path)
		if file.RuleSet != "../rules.yaml" {
			continue
		}
		rules, _ := compiled(t)
		for _, r := range posting.RunCases(rules, chart, file.Cases) {
			assert.True(t, r.Passed, "%s:%v: %s\n%s", path, r.Place, r.Title, strings.Join(r.Differences, "\n"))
			if r.Impact != nil {
				used[r.Impact.RuleID] = true
			}
		}
	}
	for _, rule := range []string{
		"sale", "sales-credit", "bill", "purchase-credit", "payment-received", "payment-made", "refund", "refund-received",
		"payout", "payout-return", "delivery",
	} {
		assert.True(t, used[rule], "no case shows what the rule %s posts", rule)
	}
}
