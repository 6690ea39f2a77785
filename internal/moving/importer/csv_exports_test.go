package importer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

const byteOrderMark = "\xef\xbb\xbf"

// imported reads one file in which every document is good.
func imported(t *testing.T, mapping, file string) []models.Document {
	t.Helper()
	results := readCSV(t, parseMapping(t, mapping), "shop", file)
	documents := make([]models.Document, len(results))
	for i, r := range results {
		require.NoError(t, r.err)
		documents[i] = r.doc
	}
	return documents
}

// refused reads one file of which nothing is good, and returns why.
func refused(t *testing.T, mapping, file string) string {
	t.Helper()
	results := readCSV(t, parseMapping(t, mapping), "shop", file)
	require.NotEmpty(t, results)
	var whys []string
	for _, r := range results {
		require.ErrorIs(t, r.err, importer.ErrInvalid)
		whys = append(whys, r.err.Error())
	}
	return strings.Join(whys, "\n")
}

// TestCSVOfExcel: the byte order mark is there before a quoted name, in a file alone and in each
// file of an import.
// TestShippedShopifyVoided: nothing is made of a voided order, whatever was refunded of it.
func TestShippedShopifyVoided(t *testing.T) {
	t.Parallel()
	file := strings.NewReplacer("#1004,customer@example.com,voided,,", "#1004,customer@example.com,voided,2026-02-03 10:00:00 +0100,",
		"c1004.1,0.00", "c1004.1,24.95").Replace(testFile(t, "shopify-orders.csv"))
	left := 0
	for _, text := range shipped(t, "shopify-orders", file) {
		if strings.Contains(text, "#1004") {
			left++
			assert.Contains(t, text, "the mapping leaves out (skip)")
		}
	}
	assert.Equal(t, 4, left)
}

// TestCSVThousandOrNot: 1.234 is no amount of euros unless the mapping says that the point is no thousands.
func TestCSVThousandOrNot(t *testing.T) {
	t.Parallel()
	const payments = "group: {key: No}\ndocument:\n  date: Day\n  currency: Cur\n  amount: Amount\n  fee: Fee\n  types: [{type: payment}]\n"
	const dutch = "numbers: {decimal: ',', thousands: '.'}\n"
	file := func(row string) string { return "No,Day,Cur,Amount,Fee\n1,2026-01-31," + row + "\n" }
	for _, row := range []string{"EUR,1.234,", "EUR,-12.500,", "JPY,1.000,", "EUR,5,1.000", "eur,€ 999.999,"} {
		assert.Contains(t, refused(t, payments, file(row)), "separate thousands?", row)
	}
	for row, want := range map[string]int64{
		"EUR,1.23,": 123, "EUR,0.125,": 12, "EUR,1.2345,": 123, "EUR,1234.000,": 123400, "KWD,1.234,": 1234,
	} {
		assert.Equal(t, want, imported(t, payments, file(row))[0].Content.Amount, row)
	}
	assert.Equal(t, int64(123), imported(t, "numbers: {thousands: ','}\n"+payments, file("EUR,1.234,"))[0].Content.Amount)
	assert.Equal(t, int64(123400), imported(t, dutch+payments, file("EUR,1.234,"))[0].Content.Amount)
}

func TestCSVOfExcel(t *testing.T) {
	t.Parallel()
	const header = `"No";"Day";"Item";"Qty";"Price"` + "\r\n"
	semicolon := "csv: {separator: ';'}\n" + smallMapping
	for _, start := range []string{byteOrderMark, byteOrderMark + "sep=;\r\n", "sep=;\r\n", ""} {
		results := readCSV(t, parseMapping(t, semicolon), "shop",
			start+header+"\"1\";\"2026-01-05\";\"a\";\"1\";\"1.00\"\r\n",
			start+header+"2;2026-01-05;\"b\";1;2\r\n")
		require.Len(t, results, 2)
		for i, r := range results {
			require.NoError(t, r.err, "%q", start)
			assert.Equal(t, int64(i+1)*100, r.doc.Content.Payable)
		}
	}
	assert.Contains(t, refused(t, semicolon, "sep=,\n"+header),
		`the file says that its separator is ',', and csv.separator is ';'`)
	assert.Contains(t, refused(t, semicolon, byteOrderMark+header+"1;2026-01-05;a;x;1\n"), "line 2: Qty")
	assert.Contains(t, refused(t, semicolon, "sep=;\n"+header+"1;2026-01-05;a;x;1\n"), "line 3: Qty",
		"lines are counted as the file has them")
}

func TestCSVEncodingsThatContradictTheFile(t *testing.T) {
	t.Parallel()
	const text = "No,Day,Item,Qty,Price\n1,2026-01-05,ä,1,1\n"
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	require.NoError(t, err)
	in := func(encoding string) string { return "csv: {encoding: " + encoding + "}\n" + smallMapping }
	for _, encoding := range []string{"latin1", "windows-1252"} {
		assert.Contains(t, refused(t, in(encoding), byteOrderMark+text),
			"byte order mark of UTF-8, and csv.encoding is "+encoding)
	}
	for _, encoding := range []string{"utf-8", "latin1"} {
		assert.Contains(t, refused(t, in(encoding), wide), "written in UTF-16; set csv.encoding to utf-16")
		assert.Contains(t, refused(t, in(encoding), wide[2:]), "written in UTF-16", "also without a mark")
	}
	for _, file := range []string{wide, wide[2:]} {
		assert.Equal(t, "ä", imported(t, in("utf-16"), file)[0].Content.Lines[0].Code)
	}
}

func TestCSVNumbersAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	const mapping = `csv: {separator: ";"}
numbers: {decimal: ",", thousands: THOUSANDS}
group: {key: No}
document: {date: Day, currency: {value: EUR}, types: [{type: invoice}]}
lines: {net: Net}
`
	for thousands, cells := range map[string]map[string]int64{
		`"."`: {
			"12,50": 1250, "(12,50)": -1250, "12,50-": -1250, "-12,50": -1250, "+12,50": 1250, "12,50+": 1250,
			"\u221212,50": -1250,
			"12,50 €":     1250, "€ 12,50": 1250, "€12,50": 1250, "EUR 12,50": 1250, "12,50 eur": 1250, "12,50\u00a0€": 1250,
			"-€12,50": -1250, "€-12,50": -1250, "€ (12,50)": -1250, "(€ 12,50)": -1250, "12,50- €": -1250, "12,50 €-": -1250,
			"1.234,50": 123450, "(1.234,50)": -123450, ",5": 50, "- 12,50": -1250, "0,00-": 0,
		},
		`" "`:      {"1 234,50": 123450, "1\u00a0234,50": 123450, "1\u202f234,50": 123450, "1\u2009234,50 €": 123450},
		`"\u00a0"`: {"1 234,50": 123450, "1\u202f234,50": 123450},
		`"'"`:      {"1'234,50": 123450, "1\u2019234,50": 123450},
		`"’"`:      {"1'234,50": 123450},
	} {
		m := strings.Replace(mapping, "THOUSANDS", thousands, 1)
		for cell, want := range cells {
			assert.Equal(t, want, imported(t, m, "No;Day;Net\n1;2026-01-05;"+cell+"\n")[0].Content.Payable, cell)
		}
	}
	m := strings.Replace(mapping, "THOUSANDS", `"."`, 1)
	for cell, want := range map[string]string{
		"12,50 $": "is in another currency than EUR", "USD 12,50": "is in another currency than EUR",
		"kr 12,50": "another currency",
		"(-12,50)": "is not a number such as", "-12,50-": "is not a number", "+-12,50": "is not a number",
		"(12,50":    "is not a number",
		"€ 12,50 €": "is not a number", "12,50 CR": "is not a number", "12,-": "is not a number", "€": "is not a number",
		"()":    "is not a number",
		"12.50": "is not a number", "1'234,50": "numbers.thousands say how", "12,50%": "is not a number",
		"--": "is not a number",
	} {
		assert.Contains(t, refused(t, m, "No;Day;Net\n1;2026-01-05;"+cell+"\n"), want, cell)
	}
	assert.Contains(t, refused(t, smallMapping, "No,Day,Item,Qty,Price\n1,2026-01-05,a,€ 1,1\n"),
		"is an amount of money, and a plain number is wanted")
	yen := strings.Replace(smallMapping, "EUR", "JPY", 1)
	assert.Equal(t, int64(12), imported(t, yen, "No,Day,Item,Qty,Price\n1,2026-01-05,a,1,¥12\n")[0].Content.Payable)
}

func TestCSVDatesAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for layout, cells := range map[string]map[string]string{
		"YYYY-MM-DD": {
			"2026-01-05": "2026-01-05", "2026-01-05T23:30:00Z": "2026-01-05", "2026-01-05T00:30:00+02:00": "2026-01-05",
			"2026-01-05 23:30:00 -0800": "2026-01-05", "2026-01-05T23:30:00.123456Z": "2026-01-05",
			"2026-01-05 10:00":        "2026-01-05",
			"2026-01-05 10:00:00 UTC": "2026-01-05", "2026-01-05T10:00:00+02": "2026-01-05",
			"2026-01-05T25:00:00Z": "", "2026-01-05 morning": "", "2026-01-05T10:00:00Europe": "", "2026-02-30T10:00:00Z": "",
			"26-01-05": "",
		},
		"DD.MM.YY": {
			"05.01.26": "2026-01-05", "05.01.68": "2068-01-05", "05.01.69": "1969-01-05",
			"05.01.2026": "",
		},
		"DD.MM.YYYY": {"05.01.2026": "2026-01-05", "05.01.26": ""},
		"M/D/YY":     {"1/5/26": "2026-01-05", "12/31/99": "1999-12-31"},
		"DD.MM.YYYY hh:mm:ssZ": {
			"05.01.2026 23:30:00+0100": "2026-01-05", "05.01.2026 23:30:00+01:00": "2026-01-05",
			"05.01.2026 23:30:00": "",
		},
		"YYYY-MM-DDThh:mm:ssZ":     {"2026-01-05T23:30:00Z": "2026-01-05", "2026-01-05": ""},
		"YYYY-MM-DD hh:mm:ss Z":    {"2026-01-05 23:30:00 -08": "2026-01-05"},
		"DD/MM/YYYY":               {"05/01/2026": "2026-01-05"},
		"YYYYMMDD":                 {"20260105": "2026-01-05"},
		"YYYY-MM-DD hh:mm":         {"2026-01-05 10:00": "2026-01-05"},
		"YYYY-MM-DDThh:mm:ss+hh00": nil,
	} {
		mapping := strings.Replace(smallMapping, "date: Day", "date: {column: Day, layout: '"+layout+"'}", 1)
		if cells == nil {
			_, err := importer.ParseMapping([]byte(mapping))
			assert.ErrorIs(t, err, importer.ErrInvalidMapping, layout)
		}
		for cell, want := range cells {
			file := "No,Day,Item,Qty,Price\n1," + cell + ",a,1,1\n"
			if want == "" {
				assert.Contains(t, refused(t, mapping, file), "is not a date of the form "+layout, cell)
			} else {
				assert.Equal(t, want, imported(t, mapping, file)[0].IssueDate.String(), cell)
			}
		}
	}
}

// TestCSVSkipsTotals: what the table says is left out and counted, also where such a row has no key
// or too few cells.
func TestCSVSkipsTotals(t *testing.T) {
	t.Parallel()
	const file = "No,Day,Item,Qty,Price\n1,2026-01-05,a,1,1\n,Subtotal,,,1\n2,2026-01-05,b,1,2\nTotal,,,,3\nGrand total\n"
	assert.Contains(t, refused(t, smallMapping, file), "line 3: No is empty")
	mapping := "csv: {skip: [{column: No, is: [Total]}, {column: Day, prefix: Sub}, {column: No, matches: '(?i)^grand'}]}\n" + smallMapping
	c, err := importer.OpenCSV(t.Context(), parseMapping(t, mapping), "shop",
		memory(file, "No,Day,Item,Qty,Price\n3,2026-01-05,c,1,3\n"))
	require.NoError(t, err)
	assert.Equal(t, []importer.SkippedRows{{Source: "a.csv", Rows: 3, FirstLine: 3}}, c.Skipped())
	assert.Equal(t, 3, c.Count())
	assert.Len(t, imported(t, mapping, file), 2)
	for change, want := range map[string]string{
		"{column: No, is: [Total]}": "", "{column: No}": "would skip every row", "{is: Total}": `missing key "column"`,
		"{column: No, is: a, prefix: b}": "keep one", "{column: No, is: Total, kind: x}": `unknown key "kind"`,
	} {
		_, err := importer.ParseMapping([]byte("csv: {skip: [" + change + "]}\n" + smallMapping))
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want, change)
		}
	}
}

func TestCSVTaxesFromRates(t *testing.T) {
	t.Parallel()
	const mapping = `group: {key: No}
document: {date: Day, currency: {value: EUR}, types: [{type: invoice}]}
lines: {net: Net, tax: {TAX}}
`
	with := func(tax string) string { return strings.Replace(mapping, "TAX", tax, 1) }
	file := func(rows ...string) string {
		return "No,Day,Net,Rate,Tax\n1,2026-01-05," + strings.Join(rows, "\n1,2026-01-05,") + "\n"
	}

	c := imported(t, with("rate: Rate, category: {value: VAT}"),
		file("10.05,19%,", "10.05,19 %,", "10.05,19,", "1,7,", "5,,"))[0].Content
	assert.Equal(t, []models.Tax{
		{Category: "VAT", Rate: models.MustRate("19"), Base: 3015, Amount: 573},
		{Category: "VAT", Rate: models.MustRate("7"), Base: 100, Amount: 7},
	}, c.Taxes)
	assert.Equal(t, int64(3015+573+100+7+500), c.Payable)
	assert.Equal(t, map[string]string{"totals": "derived", "taxes": "derived"}, c.Attributes)

	c = imported(t, with("amount: Tax, rate: Rate"), file("10,19,1.91", "10,19,"))[0].Content
	assert.Equal(t, []models.Tax{{Rate: models.MustRate("19"), Base: 2000, Amount: 381}}, c.Taxes,
		"a stated tax is never computed again")

	c = imported(t, with("rate: Rate, included: true"),
		file("0.99,19,", "0.99,19,", "0.99,19,", "-0.99,7,", "2.00,,"))[0].Content
	assert.Equal(t, []int64{84, 83, 83, -93, 200},
		[]int64{c.Lines[0].Net, c.Lines[1].Net, c.Lines[2].Net, c.Lines[3].Net, c.Lines[4].Net})
	assert.Equal(t, []models.Tax{
		{Rate: models.MustRate("19"), Base: 250, Amount: 47},
		{Rate: models.MustRate("7"), Base: -93, Amount: -6},
	}, c.Taxes)
	assert.Equal(t, int64(297-99+200), c.Payable, "lines and taxes add up to the prices")

	c = imported(t, with("amount: Tax, included: true"), file("119.00,,19.00"))[0].Content
	assert.Equal(t, int64(10000), c.Lines[0].Net)
	assert.Equal(t, int64(11900), c.Payable)
	assert.NotContains(t, c.Attributes, "taxes")

	c = imported(t, with("rate: Rate, rates: fraction"), file("100,0.19,", "100,7%,"))[0].Content
	assert.Equal(t, int64(20000+1900+700), c.Payable)
	c = imported(t, with("rate: Rate, rates: percent"), file("100,0.5,"))[0].Content
	assert.Equal(t, int64(10050), c.Payable)
	c = imported(t, with("rate: Rate"), file("100,0.5%,", "100,0,", "0.50,5,"))[0].Content
	assert.Equal(t, int64(10000+50+10000+50+3), c.Payable, "half a cent is rounded up")

	for rate, want := range map[string]string{
		"0.19": "set lines.tax.rates to fraction or to percent", "-19": "is negative", "x": "is not a rate such as 19",
		"EUR 19": "is not a rate",
	} {
		assert.Contains(t, refused(t, with("rate: Rate"), file("100,"+rate+",")), want)
	}
	assert.Contains(t, refused(t, with("rate: Rate, rates: fraction"), file("100,19,")), "is not a fraction")
	_, err := importer.ParseMapping([]byte(with("category: {value: VAT}")))
	assert.ErrorContains(t, err, "lines.tax needs amount, rate, or both")
}

// A zero that a cell states is an amount; an empty cell is none.
func TestCSVOfZero(t *testing.T) {
	t.Parallel()
	const mapping = `
group: {key: No}
document:
  date: Day
  currency: {value: EUR}
  amount: Amount
  types: [{prefix: P, column: No, type: payment}, {type: receipt}]
`
	for cell, zero := range map[string]bool{"0.00": true, "-0.00": true, "1.00": false} {
		docs := imported(t, mapping, "No,Day,Amount\nP1,2026-01-05,"+cell+"\n")
		assert.Equal(t, zero, docs[0].Content.Zero, cell)
	}
	assert.False(t, imported(t, mapping, "No,Day,Amount\nR1,2026-01-05,\n")[0].Content.Zero, "it states nothing")
	assert.True(t, imported(t, smallMapping, "No,Day,Item,Qty,Price\n1,2026-01-05,a,1,0\n")[0].Content.Zero)
}

func TestCSVOfOldMacs(t *testing.T) {
	t.Parallel()
	assert.Contains(t, refused(t, smallMapping, "No,Day,Item,Qty,Price\r1,2026-01-05,a,1,1\r"),
		"its lines end in carriage returns alone")
}
