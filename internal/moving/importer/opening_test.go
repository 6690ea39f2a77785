package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

const openingFile = `account,counterparty,number,issue_date,due_date,amount,currency
1200,Ada,17,2025-12-01,2025-12-31,119.00,EUR
1600,Sue,B-9,2025-12-05,,-1000,JPY
1200,Ada,18,2025-12-01,,0,EUR
1200,Ada,19,soon,,1,EUR
1200,Ada,20,2025-12-01,,1.005,EUR
1200,,,2025-12-01,,1,EUR
1200,Ada
`

func opened(file string) (out []string) {
	o := importer.OpeningOptions{Org: "acme", By: "Bo", Reason: "opening balances", Against: "9000"}
	for d, err := range importer.Opening(strings.NewReader(file), o) {
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		c := &d.Document.Content
		out = append(out, fmt.Sprintf("%d: %s %s due %s: %v", d.Line, d.Document.ID, d.Document.IssueDate, c.DueDate, c.Journal.Entries))
	}
	return out
}

// TestOpeningOnADay: what is old is posted when the books begin.
func TestOpeningOnADay(t *testing.T) {
	t.Parallel()
	o := importer.OpeningOptions{
		Org: "acme", By: "Bo", Reason: "opening balances", Against: "9000", On: models.NewDate(2026, time.January, 1),
	}
	for d, err := range importer.Opening(strings.NewReader(openingFile), o) {
		require.NoError(t, err)
		assert.Equal(t, "2025-12-01", d.Document.IssueDate.String())
		impact, err := posting.Journal(&d.Document, posting.NewAccounts("1200", "9000"))
		require.NoError(t, err)
		assert.Equal(t, "2026-01-01", impact.PostingDate.String())
		break
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	got := opened(openingFile)
	assert.Len(t, got, 7)
	assert.Equal(t, "2: opening:1200/17/Ada 2025-12-01 due 2025-12-31: [{1200 11900   } {9000 -11900   }]", got[0])
	assert.Equal(t, "3: opening:1600/B-9/Sue 2025-12-05 due : [{1600 -1000   } {9000 1000   }]", got[1])
	for i, says := range []string{
		"line 4: invalid document: the amount is zero", "line 5: invalid document: issue_date", "line 6: invalid document: 1.005 EUR is more precise",
		"line 7: invalid document: the account or the number is missing", "line 8: invalid document: wrong number of fields",
	} {
		assert.Contains(t, got[i+2], says)
	}
	for d, err := range importer.Opening(strings.NewReader("document,account,number,issue_date,amount,currency\n old 17 ,1200,17,2025-12-01,1,EUR\n"),
		importer.OpeningOptions{Org: "acme", By: "Bo", Reason: "opening balances", Against: "9000"}) {
		assert.NoError(t, err)
		assert.Equal(t, "old 17", d.StandsFor)
	}
	for _, file := range []string{"", "account,number\n", "account,number,issue_date,amount,currency,what\n"} {
		assert.Contains(t, opened(file)[0], "the first line must name", file)
	}
}

// TestOpeningOfThePage reads the files that docs/open-items.md shows.
func TestOpeningOfThePage(t *testing.T) {
	t.Parallel()
	blocks, err := pages.Of("docs/open-items.md", "csv")
	require.NoError(t, err)
	require.Len(t, blocks, 2)
	assert.Equal(t, []string{
		"2: opening:1200/2025-0017/Sample Customer 2025-12-01 due 2025-12-31: [{1200 11900   } {9000 -11900   }]",
		"3: opening:1600/B-9/Sample Supplier 2025-12-05 due : [{1600 -25000   } {9000 25000   }]",
	}, opened(blocks[0].Text))
	assert.Equal(t, []string{"2: opening:1200/2025-0017/ 2025-12-01 due : [{1200 11900   } {9000 -11900   }]"}, opened(blocks[1].Text))
}

func FuzzOpening(f *testing.F) {
	f.Add(openingFile)
	f.Fuzz(func(_ *testing.T, file string) { opened(file) })
}
