package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
)

// shipped reads a file by a mapping that comes with Daybook, a text for each document or error.
func shipped(t *testing.T, name, file string) []string {
	t.Helper()
	source, ok := importer.ShippedMapping(name)
	require.True(t, ok)
	return documentTexts(readCSV(t, parseMapping(t, string(source)), "shop", file))
}

func documentTexts(results []csvResult) []string {
	out := make([]string, len(results))
	for i, r := range results {
		d, c := &r.doc, &r.doc.Content
		if r.err != nil {
			out[i] = r.source + ": " + r.err.Error()
			continue
		}
		text := fmt.Sprintf("%s %s %s %s %s", d.ID, d.Type, d.Direction, d.Currency, d.IssueDate)
		for _, l := range c.Lines {
			text += fmt.Sprintf("; %s %s %d", l.Kind, l.Description, l.Net)
			if !l.Rate.IsZero() {
				text += " " + l.Rate.String()
			}
		}
		for _, tax := range c.Taxes {
			text += fmt.Sprintf("; tax %s %s %d of %d", tax.Category, tax.Rate, tax.Amount, tax.Base)
		}
		if len(c.Lines) > 0 {
			text += fmt.Sprintf("; total %d", c.Total)
		} else {
			text += fmt.Sprintf("; amount %d fee %d", c.Amount, c.Fee)
		}
		out[i] = text
	}
	return out
}

// TestShippedShopify: orders whose prices include the taxes, or do not, become invoices, payments,
// refunds and credit notes.
func TestShippedShopify(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{
		"#1001/payment payment in EUR 2026-01-31; amount 5872 fee 0",
		"#1001 invoice out EUR 2026-01-31; item Tea, 100 g 4193 19; shipping Standard 412 19; discount WELCOME10 -503 19; " +
			"item Tin 832 19; tax VAT 19 938 of 4934; total 5872",
		"#1002 invoice out USD 2026-02-01; item Tea, 100 g 10000 8.25; shipping Standard 1000 8.25; tax VAT 8.25 908 of 11000; total 11908",
		"#1002/payment payment in USD 2026-02-01; amount 11908 fee 0",
		"#1002/refund refund out USD 2026-02-01; amount 2706 fee 0",
		"#1002/credit credit_note out USD 2026-02-01; item Refund 2500 8.25; tax VAT 8.25 206 of 2500; total 2706",
		"#1003 invoice out EUR 2026-02-02; item Tea, 100 g 2495; total 2495",
		"a.csv: line 6: document #1004: not a document we book: a document that the mapping leaves out (skip); skip it",
		"#1005/payment payment in EUR 2026-02-03; amount 2260 fee 0",
		"#1005/refund refund out EUR 2026-02-03; amount 2260 fee 0",
		"a.csv: line 8: document #1005/credit: not a document we book: a document that the mapping leaves out (skip); skip it",
		"#1005 invoice out EUR 2026-02-03; item Book of tea 947; item Tea, 50 g 1053; tax VAT 19 190 of 0; tax VAT 7 70 of 0; total 2260",
	}, shipped(t, "shopify-orders", testFile(t, "shopify-orders.csv")))
	wrong := shipped(t, "shopify-orders", strings.Replace(testFile(t, "shopify-orders.csv"), "24.95,,TEA-100", "25.95,,TEA-100", 1))
	assert.Contains(t, strings.Join(wrong, "\n"), "the total is stated as 58.72 EUR, but the lines come to 60.72 EUR, and with the taxes "+
		"to 70.10 EUR: a difference of -2.00 EUR or -11.38 EUR")
}

// TestShippedStripe: each kind of movement of the balance, and one that the mapping does not know.
func TestShippedStripe(t *testing.T) {
	t.Parallel()
	file := testFile(t, "stripe-balance.csv")
	assert.Equal(t, []string{
		"txn_1 payment in EUR 2026-01-31; amount 105872 fee 3110",
		"txn_2 payment in EUR 2026-02-01; amount 2000 fee 35",
		"txn_3 refund out EUR 2026-02-02; amount 2000 fee 0",
		"txn_4 refund out EUR 2026-02-03; amount 5872 fee 2000",
		"txn_5 payment in EUR 2026-02-04; amount 5872 fee -2000",
		"txn_6 payment in EUR 2026-02-05; amount 0 fee 250",
		"txn_7 payout in EUR 2026-02-09; amount 102477 fee 0",
		"txn_8 payout_return out EUR 2026-02-10; amount 102477 fee 0",
	}, shipped(t, "stripe-balance", file))
	assert.Contains(t, shipped(t, "stripe-balance", strings.Replace(file, "stripe_fee", "reserve", 1))[5],
		"document txn_6: invalid document: a.csv: line 7: no document of the mapping takes the row")
	assert.Equal(t, []string{
		"txn_1 payment in EUR 2026-01-31; amount 5872 fee 110",
		"txn_4 refund out EUR 2026-02-03; amount 5872 fee 2000",
		"txn_6 payment in EUR 2026-02-05; amount 0 fee 250",
	}, shipped(t, "stripe-report", testFile(t, "stripe-report.csv")))
	// The days of the books.
	source, _ := importer.ShippedMapping("stripe-balance")
	zoned := strings.Replace(string(source), "date: Created (UTC)", "date: {column: Created (UTC), zone: Europe/Berlin}", 1)
	assert.Contains(t, documentTexts(readCSV(t, parseMapping(t, zoned), "shop", file))[0], "2026-02-01")
}

// TestCSVDatesInAZone: a day is that of the zone where the text has a time.
func TestCSVDatesInAZone(t *testing.T) {
	t.Parallel()
	const mapping = `
group: {key: Id}
document: {date: {column: Day, zone: Europe/Berlin}, currency: {value: EUR}, amount: Amount, types: [{type: payment}]}`
	for text, want := range map[string]string{
		"2026-01-31": "2026-01-31", "2026-01-31 22:59": "2026-01-31", "2026-01-31T23:00:00Z": "2026-02-01",
		"2026-01-31 23:30:00 +0100": "2026-01-31", "2026-01-31 19:30:00-05:00": "2026-02-01", "2026-07-31 22:00": "2026-08-01",
	} {
		assert.Equal(t, want, imported(t, mapping, "Id,Day,Amount\n1,"+text+",1\n")[0].IssueDate.String(), text)
	}
	layout := strings.Replace(mapping, "zone:", "layout: \"DD.MM.YYYY hh:mm\", zone:", 1)
	assert.Equal(t, "2026-02-01", imported(t, layout, "Id,Day,Amount\n1,31.01.2026 23:30,1\n")[0].IssueDate.String())
}

// TestCSVOfSeveralDocuments: the documents of a row do not disturb each other, and a row that cannot
// be read refuses all of them.
func TestCSVOfSeveralDocuments(t *testing.T) {
	t.Parallel()
	const mapping = `
group: {key: No}
document: {date: Day, currency: {value: EUR}}
documents:
  - types: [{type: invoice}]
    lines: [{net: Net}, {net: {column: Less, negate: true}, rows: [{column: Less, matches: "[1-9]"}], kinds: [{kind: discount}]}]
  - {name: payment, rows: [{column: Paid, matches: "."}], date: Paid, amount: Net, types: [{type: payment, direction: in}]}
`
	const header = "No,Day,Net,Less,Paid\n"
	assert.Equal(t, []string{
		"1/payment payment in EUR 2026-01-06; amount 1000 fee 0",
		"1 invoice out EUR 2026-01-05; item  1000; discount  -100; item  500; total 1400",
		"2 invoice out EUR 2026-01-05; item  300; total 300",
	}, documentTexts(readCSV(t, parseMapping(t, mapping), "shop", header+"1,2026-01-05,10.00,1.00,2026-01-06\n1,,5.00,,\n2,2026-01-05,3,,\n")))
	short := documentTexts(readCSV(t, parseMapping(t, mapping), "shop", header+"1,2026-01-05,10.00,1.00\n"))
	require.Len(t, short, 2)
	assert.Contains(t, short[1], "a.csv: line 2: document 1/payment: invalid document: a.csv: line 2: the row has 4 cells and not 5")
}

// TestCSVMappingsOfSeveralDocuments: what is wrong with them is told with its place.
func TestCSVMappingsOfSeveralDocuments(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"{amount: A}":          `missing key "types"; add it`,
		"{types: [{type: x}]}": "there is no lines",
		"{amount: A, types: [{type: x, skip: true}]}":                                                "a document that is left out has no type",
		"{amount: A, types: [{type: x}], rows: [{column: A}]}":                                       "the row would take every row of the files",
		"{amount: A, types: [{type: x}], name: \"1\"}":                                               "is not a valid name",
		"{amount: A, types: [{type: x}], date: {column: D, zone: Nowhere}}":                          `"Nowhere" is not a time zone`,
		"{amount: A, types: [{type: x}], taxes: [{amount: T}]}":                                      "need document.total",
		"{total: A, types: [{type: x}], lines: {net: N}, taxes: [{amount: T, rate: R, percent: x}]}": "is not a regular expression with one group",
		"{types: [{type: x}], lines: [{price: P}]}":                                                  "lines needs net, or quantity and price",
		"{types: [{type: x}], lines: {net: N, tax: {included: true}}}":                               "lines.tax needs amount, rate, or both",
	} {
		_, err := importer.ParseMapping([]byte("group: {key: K}\ndocument: {date: D, currency: {value: EUR}}\ndocuments: [" + document + "]\n"))
		require.ErrorIs(t, err, importer.ErrInvalidMapping, document)
		assert.ErrorContains(t, err, want, document)
	}
	_, err := importer.ParseMapping([]byte("group: {key: K}\ndocument: {date: D, currency: {value: EUR}}\nlines: {net: N}\ndocuments: [{types: [{type: x}], amount: A}]\n"))
	assert.ErrorContains(t, err, "3:8: lines belong to an element of documents")
}

func TestShippedMappings(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"shopify-orders", "stripe-balance", "stripe-report"}, importer.ShippedMappings())
	_, ok := importer.ShippedMapping("../mapping.schema")
	assert.False(t, ok)
}
