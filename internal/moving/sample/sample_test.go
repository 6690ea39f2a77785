package sample_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/models"
)

const examples = "../../../../shared/data/gobl/examples"

func compiled(t *testing.T) (*posting.RuleSet, posting.Chart) {
	t.Helper()
	rules, err := posting.Compile(sample.Rules())
	require.NoError(t, err)
	return rules, posting.ChartOf(sample.Chart())
}

func TestChart(t *testing.T) {
	t.Parallel()
	rules, chart := compiled(t)
	accounts := sample.Chart()
	types := []models.AccountType{
		models.AccountAsset, models.AccountLiability, models.AccountEquity,
		models.AccountIncome, models.AccountExpense,
	}
	for i, a := range accounts {
		assert.Contains(t, types, a.Type, a.Code)
		assert.NotEmpty(t, a.Name, a.Code)
		if i > 0 {
			assert.Less(t, accounts[i-1].Code, a.Code, "codes in order, each once")
		}
	}
	for _, code := range rules.Accounts() {
		assert.True(t, chart.HasAccount(code), "the rules post to %s, which the chart lacks", code)
	}
}

// TestGOBLExamples posts every published example: all balance, but for the one whose taxes
// contradict its total.
func TestGOBLExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "*", "out", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skipf("the GOBL examples are not at %s; the importer's own tests use documents of their own", examples)
	}
	rules, chart := compiled(t)
	counts := map[string]int{}
	var unbalanced, skipped []string
	for _, file := range files {
		name := strings.TrimPrefix(file, examples+"/")
		impact, err := post(t, rules, chart, file)
		var e *posting.Error
		switch {
		case errors.Is(err, importer.ErrNotBookable):
			skipped = append(skipped, name)
		case errors.As(err, &e):
			assert.Equal(t, models.CodeUnbalanced, e.Code, "%s: %v", name, err)
			unbalanced = append(unbalanced, name)
		default:
			require.NoError(t, err, name)
			counts[impact.RuleID]++
			assert.NotEmpty(t, impact.Entries, name)
			last := impact.Entries[len(impact.Entries)-1]
			if last.RuleLineID == posting.RoundingLineID {
				counts["with rounding"]++
				assert.Equal(t, int64(1), last.Amount, name)
			}
		}
	}
	t.Logf("%d files, %d skipped, posted: %v", len(files), len(skipped), counts)
	assert.Equal(t, []string{"es/out/invoice-es-bypass.json"}, unbalanced)
	assert.Len(t, skipped, 9)
	assert.Equal(t, map[string]int{"sale": 113, "sales-credit": 9, "payment-received": 4, "with rounding": 2}, counts)
}

// TestKnownDocuments compares entries with those worked out by hand from the printed documents.
func TestKnownDocuments(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(examples); err != nil {
		t.Skipf("the GOBL examples are not at %s", examples)
	}
	rules, chart := compiled(t)
	for file, want := range knownDocuments {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			impact, err := post(t, rules, chart, filepath.Join(examples, file))
			require.NoError(t, err)
			got := map[string]int64{} // debit positive
			for _, e := range impact.Entries {
				amount := e.Amount
				if e.Side == models.Credit {
					amount = -amount
				}
				got[e.Account] += amount
			}
			assert.Equal(t, want, got)
		})
	}
}

// TestPublishedElectronicInvoices: the sample rules post each of the published examples of UBL that
// adds up.
func TestPublishedElectronicInvoices(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../shared/data/ubl/*.xml")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("the published examples of UBL are not beside the project")
	}
	rules, chart := compiled(t)
	var refused []string
	for _, file := range files {
		impact, err := post(t, rules, chart, file)
		if errors.Is(err, importer.ErrInvalid) {
			refused = append(refused, filepath.Base(file))
			continue
		}
		require.NoError(t, err, file)
		assert.NotEmpty(t, impact.Entries, file)
	}
	assert.Equal(t, []string{"en16931-custom-namespace-prefixes.xml"}, refused)
}

func post(t *testing.T, rules *posting.RuleSet, chart posting.Chart, file string) (*posting.Impact, error) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	imported, err := importer.GOBL(data)
	if filepath.Ext(file) == ".xml" {
		imported, err = importer.UBL(bytes.NewReader(data))
	}
	if err != nil {
		return nil, err
	}
	c := imported.Document.Content
	if imported.Document.Type != models.DocumentPayment {
		assert.Equal(t, c.Total, c.Payable+c.Prepaid, "%s: total is what is payable and what was prepaid", file)
	}
	assert.True(t, slices.Contains([]models.DocumentType{"invoice", "credit_note", "payment"}, imported.Document.Type))
	return rules.Evaluate(&imported.Document, chart)
}
