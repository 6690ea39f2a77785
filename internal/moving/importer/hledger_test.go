package importer_test

import (
	"slices"
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

func readJournal(source string) []result {
	var results []result
	o := importer.JournalOptions{Org: "acme", By: "clerk"}
	for d, err := range importer.HLedger(strings.NewReader(source), o) {
		results = append(results, result{d.Document, err})
	}
	return results
}

func TestHLedger(t *testing.T) {
	t.Parallel()
	got := readJournal("; opening balances\r\n" + `account assets:1200 Bank  ; type: A
commodity 1.000,00 EUR
    format EUR
comment
2026-01-01 not this one
end comment
decimal-mark ,

2026/1/1 * (J-1) opening balances  ; id: opening
    ; from the former books
    assets:1200 Bank            1.234,50 EUR = 1.234,50 EUR
    ! liabilities:17%3A10 Loan  EUR -200,00  ; until 2030
    assets:1200 Bank            0 EUR
    equity:9000
2026-01-02 two currencies
	assets:1200	-10,5 EUR
	assets:1210	11 USD
	equity:9100
`)
	require.Len(t, got, 2)
	require.NoError(t, got[0].err)
	assert.Equal(t, models.Document{
		OrgID: "acme", ID: "opening", Type: models.DocumentJournal, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, time.January, 1),
		Content: models.Content{Number: "J-1", Source: "hledger", Journal: &models.Journal{
			Reason: "opening balances", By: "clerk", Entries: []models.JournalEntry{
				{Account: "1200", Amount: 123450},
				{Account: "17:10", Amount: -20000, Note: "until 2030"},
				{Account: "9000", Amount: -103450},
			},
		}},
	}, got[0].doc)
	require.NoError(t, got[1].err)
	assert.Equal(t, []models.JournalEntry{
		{Account: "1200", Amount: -1050},
		{Account: "1210", Amount: 1100, Currency: "USD"},
		{Account: "9100", Amount: 1050},
		{Account: "9100", Amount: -1100, Currency: "USD"},
	}, got[1].doc.Content.Journal.Entries)
}

// TestHLedgerTags: tags are dimensions, of the transaction or of the posting that they stand with.
func TestHLedgerTags(t *testing.T) {
	t.Parallel()
	got := readJournal(`2026-01-01 rent  ; id: r-1, cost_centre: office
    ; see: https://example.com, line: x, Project: 7
    6310  5 EUR  ; until 10:30, project: 7, dim-date: a%2C b
    ; region: north
    1000  0 EUR
    ; region: of a posting that is left out
    1000
`)
	require.Len(t, got, 1)
	require.NoError(t, got[0].err)
	assert.Equal(t, "r-1", got[0].doc.ID)
	c := got[0].doc.Content
	assert.Equal(t, models.Dimensions{"cost_centre": "office", "see": "https://example.com"}, c.Dimensions)
	assert.Equal(t, models.Dimensions{"project": "7", "date": "a, b", "region": "north"}, c.Journal.Entries[0].Dimensions)
	assert.Nil(t, c.Journal.Entries[1].Dimensions)
}

// A transaction is the same whatever user imports it, and one that is there twice is two.
func TestHLedgerKnowsTransactionsAgain(t *testing.T) {
	t.Parallel()
	const rent = "2026-01-01 rent\n  a:1  5 EUR\n  a:2\n\n"
	got := readJournal(rent + rent + strings.Replace(rent, "5", "6", 1))
	require.Len(t, got, 3)
	assert.Equal(t, got[0].doc.ID+"/2", got[1].doc.ID)
	assert.NotContains(t, got[2].doc.ID, got[0].doc.ID)
	for d, err := range importer.HLedger(strings.NewReader(rent), importer.JournalOptions{Org: "acme", By: "another"}) {
		require.NoError(t, err)
		assert.Equal(t, got[0].doc.ID, d.Document.ID)
	}
}

func TestHLedgerRefuses(t *testing.T) {
	t.Parallel()
	const good = "2026-01-01 rent\n  a:1  5 EUR\n  a:2\n"
	for change, message := range map[string]string{
		"2026-01-01=>2026-02-30":          "line 1: invalid document: ",
		"2026-01-01=>26-1-1":              "does not begin as a transaction does",
		" rent=>":                         "no description, which says why",
		"2026-01-01=>2026-01-01=2":        "second date",
		"5 EUR=>5":                        "needs a currency such as EUR",
		"5 EUR=>€5":                       "needs a currency such as EUR",
		"5 EUR=>5 EUX":                    "line 2: invalid document: \"5 EUX\" is not an amount such as -1,234.50 EUR",
		"5 EUR=>5.001 EUR":                "more decimals than EUR has",
		"5 EUR=>1,000 EUR":                `"decimal-mark ."`,
		"5 EUR=>1,00.00 EUR":              "is not an amount such as",
		"5 EUR=>5 EUR @ 2 USD":            "has a cost",
		"5 EUR=>= 5 EUR":                  "sets a balance",
		"5 EUR=>":                         "two postings have no amount",
		"a:1=>(a:1)":                      "virtual posting",
		"a:1=>[a:1]":                      "virtual posting",
		"a:1=>a:":                         "no code after its last colon",
		"5 EUR=>92233720368547758.08 EUR": "64 bits",
		"5 EUR=>5 EUR ; date:2026-01-09":  "a date of its own",
		"5 EUR=>5 EUR ; x, date:1/9":      "a date of its own",
		"5 EUR=>5 EUR  ; [2026-01-09]":    "a date of its own",
		"  a:2\n=>  a:2\n  ; date: 1/9\n": "a date of its own",
		"2026-01-01 rent=>include other.journal\n2026-01-01 rent": `"include" is not read here; write it out by: hledger print -x`,
		"2026-01-01 rent=>~ monthly":                              "is not read here",
		"2026-01-01 rent=>decimal-mark ;\n2026-01-01 rent":        "want . or ,",
		"  a:1  5 EUR\n  a:2\n=>  ; nothing\n":                    "posts nothing",
		"  a:2\n=>  a:2\n\ncomment\n":                             "no end",
		"a:1  5 EUR=>a:1  " + strings.Repeat("9", 50) + " EUR":    "not a decimal number",
		"  a:1  5=>  a:1  -92233720368547758.08 EUR\n  a:1  5":    "the sum of the amounts is out of range",
	} {
		from, to, _ := strings.Cut(change, "=>")
		require.Contains(t, good, from)
		got := readJournal(strings.Replace(good, from, to, 1))
		var wrong []string
		for _, r := range got {
			if r.err != nil {
				require.ErrorIs(t, r.err, importer.ErrInvalid)
				wrong = append(wrong, r.err.Error())
			}
		}
		assert.Contains(t, strings.Join(wrong, "\n"), message, change)
	}
	for _, r := range readJournal("2026-01-01 x\n  a:1  EUR\n\n" + good) {
		if r.err == nil {
			assert.Len(t, r.doc.Content.Journal.Entries, 2, "reading goes on")
		}
	}
}

// What a directive says of a decimal comma counts, or the rest of the file is not read: hledger takes
// 1.000 EUR for a thousand euros then.
func TestHLedgerDecimalComma(t *testing.T) {
	t.Parallel()
	const rent = "2026-01-01 rent  ; date:2026-01-02\n  a:1  1.000 EUR  ; [to do], update:1\n  a:2\n"
	for directive, refused := range map[string]bool{
		"commodity 1.000,00 EUR": true, "commodity EUR 1000,00": true, "commodity EUR\n  format 1 000,00 EUR": true,
		"D 1.000,00 EUR": true, "commodity 1000, EUR": true, "commodity €1.000,000": true, "commodity 1.000.000,00 EUR": true,
		"decimal-mark ,\ncommodity 1.000,00 EUR": false, "commodity 1,000.00 EUR": false, "commodity 1,000,000.00 EUR": false,
		"commodity 1000.00 EUR  ; not 1,5": false, "account a:1,2": false, "commodity EUR": false, "P 2026-01-01 EUR 1,1 USD": false,
	} {
		got := readJournal(directive + "\n" + rent)
		require.Len(t, got, 1, directive)
		if refused {
			require.ErrorIs(t, got[0].err, importer.ErrInvalid, directive)
			assert.Contains(t, got[0].err.Error(), "decimal comma", directive)
			continue
		}
		require.NoError(t, got[0].err, directive)
		want := int64(100)
		if strings.HasPrefix(directive, "decimal-mark ,") {
			want = 100000
		}
		assert.Equal(t, want, got[0].doc.Content.Journal.Entries[0].Amount, directive)
	}
}

// FuzzHLedger: no text makes the reader panic, and with an open posting what is read balances.
func FuzzHLedger(f *testing.F) {
	f.Add("2026-01-01 rent\n  a:1  5 EUR\n  a:2\n")
	f.Add("decimal-mark ,\n2026-01-01 (c) x ; id:y\n  a:1  -1.000,5 EUR = 3 EUR\n  a:3  USD 1\n  a:2\n")
	f.Add("comment\nend comment\n2026/1/1\n\ta:1\t(5) JPY\n")
	f.Add("2026.1.10\n 0  1EUR \n0\n  a:2\n")
	f.Fuzz(func(t *testing.T, text string) {
		for d, err := range importer.HLedger(strings.NewReader(text), importer.JournalOptions{Org: "o", By: "b", Reason: "r"}) {
			if err != nil {
				continue
			}
			open := slices.ContainsFunc(d.Document.Content.Journal.Entries, func(e models.JournalEntry) bool { return e.Account == "2" })
			if open && strings.Count(text, "a:2") == 1 && strings.Contains(text, "\n  a:2\n") && strings.Count(text, "EUR") == 1 {
				if err := posting.Check(&d.Document, nil); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestJournalOfThePage reads the journal that docs/import.md shows.
func TestJournalOfThePage(t *testing.T) {
	t.Parallel()
	blocks, err := pages.Of("docs/import.md", "ledger")
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	got := readJournal(blocks[0].Text)
	require.Len(t, got, 1)
	require.NoError(t, got[0].err)
	assert.Equal(t, "opening", got[0].doc.ID)
	assert.Equal(t, []models.JournalEntry{
		{Account: "1000", Amount: 1250000},
		{Account: "1200", Amount: 35700},
		{Account: "1600", Amount: -100000},
		{Account: "9000", Amount: -1185700},
	}, got[0].doc.Content.Journal.Entries)
}
