package importer_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

const minimal = `{"org_id":"acme","id":"p-1","type":"payment","direction":"in","currency":"EUR","issue_date":"2025-01-31","content":{"amount":1000}}`

type result struct {
	doc models.Document
	err error
}

func read(source string) []result {
	var results []result
	for d, err := range importer.NDJSON(strings.NewReader(source)) {
		results = append(results, result{d.Document, err})
	}
	return results
}

func TestNDJSON(t *testing.T) {
	t.Parallel()
	results := read("\xef\xbb\xbf" + minimal + "\r\n\n" + strings.Replace(minimal, "p-1", "p-2", 1))
	require.Len(t, results, 2)
	require.NoError(t, results[0].err)
	assert.Equal(t, models.Document{
		OrgID: "acme", ID: "p-1", Type: models.DocumentPayment, Direction: models.DirectionIn, Currency: "EUR",
		IssueDate: models.NewDate(2025, time.January, 31), Content: models.Content{Amount: 1000},
	}, results[0].doc)
	require.NoError(t, results[1].err)
	assert.Equal(t, "p-2", results[1].doc.ID)
	assert.Empty(t, read(""))
}

func TestNDJSONRefuses(t *testing.T) {
	t.Parallel()
	for change, message := range map[string]string{
		`"org_id":"acme",=>`:                      "org_id is missing",
		`p-1=>`:                                   "id is missing",
		`p-1=>` + strings.Repeat("x", 256):        "at most 255",
		`"type":"payment",=>`:                     "type is missing",
		`"direction":"in"=>"direction":"inwards"`: "direction",
		`EUR=>eur`:                                "ISO 4217",
		`"issue_date":"2025-01-31",=>`:            "issue_date is missing",
		`2025-01-31=>2025-02-30`:                  "there is no such day",
		`2025-01-31=>0000-01-01`:                  "issue_date: date 0000-01-01: want one from 1900-01-01 to 2999-12-31",
		`2025-01-31=>0001-01-01`:                  "issue_date: date 0001-01-01: want one from 1900-01-01",
		`2025-01-31","=>9999-12-31","`:            "issue_date: date 9999-12-31",
		`"issue_date":=>"value_date":"0001-01-01","issue_date":`: "value_date: date 0001-01-01",
		`EUR=>HRK`:                     "currency: HRK was withdrawn from ISO 4217 in 2023-01",
		`EUR=>XAU`:                     "currency: XAU stands for gold and has no minor unit in ISO 4217",
		`"id":=>"ID_":`:                `there is no field "ID_"`,
		`"amount":1000=>"amuont":1000`: `there is no field "amuont"`,
		`"amount":1000=>"amount":1000,"amount":2`:             `the field "amount" is there twice`,
		`"amount":1000=>"Amount":1000`:                        `there is no field "Amount": write "amount"`,
		`"amount":1000=>"number":"` + "\xfc" + `"`:            "invalid UTF-8",
		`"issue_date"=>"value_date":5,"issue_date"`:           "/value_date: date: want a text, YYYY-MM-DD",
		`"amount":1000=>"amount":10.5`:                        "/content/amount is 10.5, and a whole number",
		`"amount":1000=>"settled":{"currency":"XXX"}`:         "settled.currency",
		`"amount":1000=>"number":"a\u0000"`:                   "U+0000",
		`"content":=>"accounting_ready_version":3,"content":`: `there is no field "accounting_ready_version"`,
		`"in"=>"in"}{`: "after top-level value",
	} {
		from, to, _ := strings.Cut(change, "=>")
		require.Contains(t, minimal, from)
		results := read("\n" + strings.Replace(minimal, from, to, 1) + "\n" + minimal)
		require.Len(t, results, 2, change)
		require.ErrorIs(t, results[0].err, importer.ErrInvalid, change)
		assert.ErrorContains(t, results[0].err, "line 2: ", change)
		assert.ErrorContains(t, results[0].err, message, change)
		assert.Zero(t, results[0].doc)
		require.NoError(t, results[1].err, "reading goes on")
	}
}

// A year-end close is read as it was exported, although its currency takes no other document on its
// day.
func TestNDJSONReadsAYearEndClose(t *testing.T) {
	t.Parallel()
	const line = `{"org_id":"acme","id":"year-end:2026","type":"journal","direction":"out","currency":"HRK","issue_date":"2026-12-31",` +
		`"content":{"journal":{"reason":"close","by":"clerk","year_end":true,"entries":[{"account":"4400","amount":1},{"account":"2900","amount":-1}]}}}`
	results := read(line + "\n" + strings.Replace(line, `"year_end":true,`, "", 1))
	require.Len(t, results, 2)
	require.NoError(t, results[0].err)
	assert.ErrorContains(t, results[1].err, "currency: HRK was withdrawn from ISO 4217 in 2023-01")
}

func TestNDJSONLineLimit(t *testing.T) {
	t.Parallel()
	fits := minimal + strings.Repeat(" ", importer.MaxLineBytes-len(minimal))
	results := read(fits + "\n" + minimal)
	require.Len(t, results, 2)
	require.NoError(t, results[0].err)
	results = read(minimal + "\n" + fits + " \n" + minimal)
	require.Len(t, results, 2)
	require.ErrorIs(t, results[1].err, importer.ErrInvalid)
	assert.ErrorContains(t, results[1].err, "line 2: ")
	assert.ErrorContains(t, results[1].err, "longer than 8388608 bytes")
}

func TestNDJSONReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var last error
	for _, err := range importer.NDJSON(iotest.ErrReader(broken)) {
		last = err
	}
	assert.ErrorIs(t, last, broken)
	assert.NotErrorIs(t, last, importer.ErrInvalid)
}

// TestDocumentationExample reads the example that docs/import.md shows.
func TestDocumentationExample(t *testing.T) {
	t.Parallel()
	blocks, err := pages.Of("docs/import.md", "json")
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		results := read(strings.ReplaceAll(b.Text, "\n", " "))
		require.Len(t, results, 1)
		require.NoError(t, results[0].err, b.Text)
		c := results[0].doc.Content
		if results[0].doc.Type == models.DocumentInvoice {
			assert.Equal(t, c.Payable+c.Prepaid, sum(c)+c.Rounding)
			assert.Equal(t, c.Total, c.Payable+c.Prepaid)
		}
	}
}

func FuzzNDJSON(f *testing.F) {
	f.Add([]byte(minimal + "\n" + minimal))
	f.Add([]byte("{}\n[]\nnull\n\n\"x\""))
	f.Add([]byte(strings.Replace(minimal, "1000", "-9223372036854775809", 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range read(string(data)) {
			if r.err != nil {
				require.ErrorIs(t, r.err, importer.ErrInvalid)
				continue
			}
			require.NoError(t, importer.Validate(r.doc))
		}
	})
}
