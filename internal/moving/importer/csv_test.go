package importer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// fullMapping uses everything that a mapping can say.
const fullMapping = `csv: {separator: ";", encoding: latin1, header: false, columns: [org, no, day, paid, cur, dir, who, where, sum, region, code, text, qty, price, net, vat, rate, cat]}
numbers: {decimal: ",", thousands: "."}
group: {key: [no], files: joined}
document:
  organization: org
  number: no
  date: {column: day, layout: DD.MM.YYYY}
  value_date: {column: paid, layout: D.M.YYYY}
  due_date: {column: paid, layout: D.M.YYYY}
  refers_to: region
  currency: {column: cur, values: {"€": EUR, Fr: CHF}, otherwise: USD}
  direction: {column: dir, values: {S: out, P: in}}
  counterparty: who
  country: {column: where, values: {Deutschland: DE}, otherwise: ""}
  total: sum
  attributes: {region: region, source: {value: till}}
  types:
    - {prefix: G, type: credit_note, negate: true}
    - {column: dir, is: [P], type: bill}
    - {matches: "^[0-9]+$", type: invoice}
lines:
  code: code
  description: text
  quantity: qty
  price: price
  net: net
  tax: {amount: vat, rate: rate, category: cat}
  kinds:
    - {is: V, kind: shipping}
    - {prefix: R-, kind: discount}
    - {column: text, matches: "(?i)voucher", kind: voucher}
`

const retailRows = `InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
1,22423,CAKESTAND,2,2011-08-12 14:50:00,10.95,9,Norway
1,POST,POSTAGE,1,2011-08-12 14:51:00,0.001,9,Norway
C2,gift_0001_20,VOUCHER,-1,2011-08-12 14:50:00,20,,EIRE
A3,B,Adjust bad debt,1,2011-08-12 14:50:00,-11062.06,,United Kingdom
`

type csvResult struct {
	source string
	doc    models.Document
	err    error
}

// memory yields files that are named a.csv, b.csv …
func memory(files ...string) func(context.Context) iter.Seq2[importer.Source, error] {
	return func(context.Context) iter.Seq2[importer.Source, error] {
		return func(yield func(importer.Source, error) bool) {
			for i, text := range files {
				name := string(rune('a'+i)) + ".csv"
				if !yield(importer.Source{Name: name, File: name, Reader: strings.NewReader(text)}, nil) {
					return
				}
			}
		}
	}
}

func readCSV(t *testing.T, m *importer.Mapping, org string, files ...string) []csvResult {
	t.Helper()
	c, err := importer.OpenCSV(t.Context(), m, org, memory(files...))
	if err != nil {
		require.ErrorIs(t, err, importer.ErrInvalid)
		return []csvResult{{err: err}}
	}
	var results []csvResult
	for d, err := range c.Documents(t.Context()) {
		results = append(results, csvResult{d.Source, d.Document, err})
	}
	return results
}

func TestCSVRetail(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../sample/online-retail/mapping.yaml")
	require.NoError(t, err)
	results := readCSV(t, parseMapping(t, string(source)), "shop", retailRows)
	require.Len(t, results, 3)
	require.NoError(t, results[0].err)
	assert.Equal(t, "a.csv: line 2", results[0].source)
	assert.Equal(t, models.Document{
		OrgID: "shop", ID: "1", Type: "invoice", Direction: models.DirectionOut, Currency: "GBP",
		IssueDate: models.NewDate(2011, time.August, 12),
		Content: models.Content{
			Number: "1", Counterparty: "9", Country: "NO", Source: "csv", Total: 2190, Payable: 2190,
			Lines: []models.Line{
				{Kind: "item", Code: "22423", Description: "CAKESTAND", Net: 2190},
				{Kind: "shipping", Code: "POST", Description: "POSTAGE"},
			},
			Attributes: map[string]string{"country_name": "Norway", "totals": "derived"},
		},
	}, results[0].doc)
	credit := results[1].doc
	assert.Equal(t, models.DocumentCreditNote, credit.Type)
	assert.Equal(t, int64(2000), credit.Content.Payable, "the sign is turned")
	assert.Equal(t, "voucher", credit.Content.Lines[0].Kind)
	assert.Equal(t, models.DocumentType("adjustment"), results[2].doc.Type)
	assert.Equal(t, int64(-1106206), results[2].doc.Content.Payable)
}

func TestCSVFull(t *testing.T) {
	t.Parallel()
	file := "acme;7;31.01.2025;5.2.2025;\xa4;S;J\xfcrgen;Deutschland;1.300,50;north;X;Work;2;500,00;;190,00;19,0 %;VAT\n" +
		"acme;G8;31.01.2025;;Fr;S;;France;-10;;V;;;;-10;;;\n" +
		"other;7;01.02.2025;;$;P;;;1;;;a VOUCHER;1;0,5;;;;\n" +
		"acme;7;31.01.2025;5.2.2025;\xa4;S;J\xfcrgen;Deutschland;1.300,50;north;R-1;;-1;1;;-0,19;19;VAT\n"
	mapping := strings.Replace(fullMapping, "€", "¤", 1) // latin1 has no euro sign
	results := readCSV(t, parseMapping(t, mapping), "", file,
		"\n \nacme;7;31.01.2025;5.2.2025;\xa4;S;J\xfcrgen;Deutschland;1.300,50;north;Y;;;;111,005;0,00;7;VAT\n")
	require.Len(t, results, 3)
	for _, r := range results {
		require.NoError(t, r.err)
	}
	paid := models.NewDate(2025, time.February, 5)
	joined := results[2].doc
	assert.Equal(t, models.Document{
		OrgID: "acme", ID: "7", Type: "invoice", Direction: "out", Currency: "EUR",
		IssueDate: models.NewDate(2025, time.January, 31), ValueDate: &paid,
		Content: models.Content{
			Number: "7", Counterparty: "Jürgen", Country: "DE", Source: "csv", Total: 130050, Payable: 130050,
			DueDate: paid, RefersTo: []string{"north"},
			Lines: []models.Line{
				{Kind: "item", Code: "X", Description: "Work", Net: 100000, Rate: models.MustRate("19"), Category: "VAT"},
				{Kind: "discount", Code: "R-1", Net: -100, Rate: models.MustRate("19"), Category: "VAT"},
				{Kind: "item", Code: "Y", Net: 11100, Rate: models.MustRate("7"), Category: "VAT"},
			},
			Taxes: []models.Tax{
				{Category: "VAT", Rate: models.MustRate("19"), Base: 99900, Amount: 18981},
				{Category: "VAT", Rate: models.MustRate("7"), Base: 11100},
			},
			Attributes: map[string]string{"region": "north", "source": "till"},
		},
	}, joined)
	credit, bill := results[0].doc, results[1].doc
	assert.Equal(t, []any{models.DocumentCreditNote, "CHF", int64(1000), int64(1000)},
		[]any{credit.Type, credit.Currency, credit.Content.Payable, credit.Content.Lines[0].Net})
	assert.Equal(t, []any{"other", "7", models.DocumentType("bill"), "USD", models.DirectionIn, "voucher"},
		[]any{bill.OrgID, bill.ID, bill.Type, bill.Currency, bill.Direction, bill.Content.Lines[0].Kind})
}

// TestCSVRounding: quantity times price is exact, and rounded half to even once, per line.
func TestCSVRounding(t *testing.T) {
	t.Parallel()
	m := parseMapping(t, smallMapping)
	for product, want := range map[string]int64{
		"1,0.005": 0, "1,0.015": 2, "1,0.025": 2, "3,0.005": 2, "-1,0.015": -2, "-1,0.025": -2, "0.5,0.01": 0,
		"1.5,0.01": 2,
		"3,0.3333": 100, "1,0.0250000000000000000000000000001": 3, "1,.5": 50, "1,5": 500,
		"92233720368547758.07,1":  math.MaxInt64,
		"-92233720368547758.08,1": math.MinInt64, "0,5": 0,
	} {
		results := readCSV(t, m, "shop", "No,Day,Item,Qty,Price\n1,2025-01-31,a,"+product+"\n")
		require.NoError(t, results[0].err, product)
		assert.Equal(t, want, results[0].doc.Content.Payable, product)
	}
}

func TestCSVRefusesDocuments(t *testing.T) {
	t.Parallel()
	m := parseMapping(t, smallMapping+"# no more\n")
	good := "2,2025-01-31,b,1,1\n"
	for rows, want := range map[string]string{
		"1,2025-01-31,a,1,1\n1,2025-01-31,a,x,1\n":           `a.csv: line 4: Qty: "x" is not a number such as -1234.50`,
		"1,2025-01-31,a,1,\n":                                `line 3: Price is empty`,
		"1,2025-01-31,a,1,1e3\n":                             `"1e3" is not a number`,
		"1,2025-01-31,a,1,\"1,5\"\n":                         `"1,5" is not a number`,
		"1,2025-01-31,a,1,--1\n":                             `"--1" is not a number`,
		"1,2025-01-31,a,1,1.\n":                              `"1." is not a number`,
		"1,2025-01-31,a,1," + strings.Repeat("9", 41) + "\n": "is not a number",
		"1,31.01.2025,a,1,1\n":                               `Day: "31.01.2025" is not a date of the form YYYY-MM-DD`,
		"1,2025-02-30,a,1,1\n":                               `"2025-02-30" is not a date`,
		"1,0000-01-01,a,1,1\n":                               `is not a date`,
		"1,2025-01-31,a,1,1\n1,2025-02-01,a,1,1\n":           `line 4: the date is "2025-02-01", and "2025-01-31" in the document's first row`,
		"1,2025-01-31,a,1\n":                                 `line 3: the row has 4 cells and not 5`,
		"1,2025-01-31,\xff,1,1\n":                            `is not UTF-8; set csv.encoding`,
		"1,2025-01-31,a\x00,1,1\n":                           `U+0000`,
		"1,2025-01-31,a,9e,1\n1,2025-01-31,a,,1\n1,2025-01-32,a,1,1\n1,2025-01-31,a,1,1\n1,2025-01-31,a,x,1\n": `and 1 more`,
		"1,2025-01-31,a,92233720368547758,1\n1,2025-01-31,a,92233720368547758,1\n":                             "the sum of the lines",
		"1,2025-01-31,a,92233720368547759,1\n":                                                                 "greater than 64 bits hold",
		strings.Repeat("1", 256) +
			",2025-01-31,a,1,1\n": "at most 255 are allowed",
	} {
		results := readCSV(t, m, "shop", "No,Day,Item,Qty,Price\n"+good+rows+"3"+good[1:])
		require.Len(t, results, 3, rows)
		require.NoError(t, results[0].err)
		assert.Equal(t, "2", results[0].doc.ID)
		require.ErrorIs(t, results[1].err, importer.ErrInvalid, rows)
		assert.ErrorContains(t, results[1].err, want, rows)
		assert.Contains(t, results[1].source, "a.csv: line 3: document 1")
		assert.Zero(t, results[1].doc, "nothing of it is imported")
		assert.NoError(t, results[2].err, "the others go on")
	}
}

// TestCSVRefusesFiles: where a row's document cannot be told, any document of the file could lack
// it.
func TestCSVRefusesFiles(t *testing.T) {
	t.Parallel()
	small := parseMapping(t, smallMapping)
	second := parseMapping(t, strings.Replace(smallMapping, "key: No", "key: Item", 1))
	good := "No,Day,Item,Qty,Price\n1,2025-01-31,x,1,1\n"
	for _, test := range []struct {
		mapping    *importer.Mapping
		rows, want string
	}{
		{small, good + "2,2025-01-31,\"a\"b,1,1\n", `line 3, column 16`},
		{small, good + "2,2025-01-31,a\"b,1,1\n", `line 3, column 15`},
		{small, good + "2,2025-01-31,\"a,1,1\n", `cannot be told apart`},
		{small, good + ",2025-01-31,a,1,1\n", `line 3: No is empty, so that it cannot be told`},
		{
			small, good + "2,2025-01-31,\"" + strings.Repeat("a", importer.MaxRowBytes+1<<14),
			"line 3: a row is longer than 1048576 bytes",
		},
		{
			second, good + "2,2025-01-31,b,1\n",
			`line 3: the row has 4 cells and not 5; put cells that contain ',' in quotes, so that it cannot be told`,
		},
		{small, "No,Day,Item,Qty\n", `the file has no column "Price"; its header is "No", "Day", "Item", "Qty"`},
		{small, "No,Day,Item,Qty,Price,Qty\n", `the file has the column "Qty" twice`},
		{small, "", "the file is empty"},
	} {
		results := readCSV(t, test.mapping, "shop", test.rows, "No,Day,Item,Qty,Price\n9,2025-01-31,y,1,1\n")
		require.Len(t, results, 2, test.want)
		require.ErrorIs(t, results[0].err, importer.ErrInvalid)
		assert.ErrorContains(t, results[0].err, test.want)
		assert.Equal(t, "a.csv", results[0].source)
		assert.NoError(t, results[1].err, "the other file goes on")
	}
}

func TestCSVAcrossFiles(t *testing.T) {
	t.Parallel()
	header := "No,Day,Item,Qty,Price\n"
	row := func(no, item string) string { return no + ",2025-01-31," + item + ",1,1\n" }
	a, b := header+row("1", "a")+row("2", "b")+row("1", "c"), header+row("3", "d")+row("1", "e")
	broken := b + "4,\"x"
	grouped := func(files string) *importer.Mapping {
		return parseMapping(t, strings.Replace(smallMapping, "key: No", "key: No, files: "+files, 1))
	}
	summary := func(results []csvResult) string {
		var parts []string
		for _, r := range results {
			switch {
			case r.err != nil:
				parts = append(parts, "refused "+r.source)
			default:
				parts = append(parts, fmt.Sprintf("%s with %d", r.doc.ID, len(r.doc.Content.Lines)))
			}
		}
		return strings.Join(parts, ", ")
	}
	for _, test := range []struct{ files, a, b, want string }{
		{"one", a, b, "refused a.csv: line 2: document 1, 2 with 1, 3 with 1"},
		{"one", a, broken, "refused a.csv: line 2: document 1, 2 with 1, refused b.csv"},
		{"one", broken, a, "refused a.csv, refused b.csv: line 2: document 1, 2 with 1"},
		{"joined", a, b, "2 with 1, 3 with 1, 1 with 3"},
		{"joined", a, broken, "refused "},
		{"apart", a, b, "a.csv/2 with 1, a.csv/1 with 2, b.csv/3 with 1, b.csv/1 with 1"},
		{"apart", a, broken, "a.csv/2 with 1, a.csv/1 with 2, refused b.csv"},
	} {
		assert.Equal(t, test.want, summary(readCSV(t, grouped(test.files), "shop", test.a, test.b)), test)
	}
}

// TestCSVKeys: keys of several columns do not run into each other.
func TestCSVKeys(t *testing.T) {
	t.Parallel()
	m := parseMapping(t, strings.Replace(smallMapping, "key: No", "key: [No, Item]", 1))
	results := readCSV(t, m, "shop",
		"No,Day,Item,Qty,Price\n1/2,2025-01-31,3,1,1\n1,2025-01-31,2/3,1,1\n1%2F2,2025-01-31,3,1,1\n")
	require.Len(t, results, 3)
	for i, want := range []string{"1%2F2/3", "1/2%2F3", "1%252F2/3"} {
		require.NoError(t, results[i].err)
		assert.Equal(t, want, results[i].doc.ID)
	}
}

func TestCSVThousands(t *testing.T) {
	t.Parallel()
	for sign, cells := range map[string]map[string]int64{
		".": {
			"1.234,5": 123450, "-1.234.567": -123456700, "12": 1200, "1.23": 0, "1234.567": 0, ".123": 0,
			"1.234.56,7": 0,
		},
		" ": {"1 234,50": 123450, "1\u00a0234": 123400, "1\u202f234": 123400, "1  234": 0},
		"":  {"1234,5": 123450, "1.5": 0, "1.234,5": 0},
	} {
		m := parseMapping(t, fmt.Sprintf("numbers: {decimal: \",\", thousands: %q}\n%s", sign, smallMapping))
		for cell, want := range cells {
			r := readCSV(t, m, "shop", "No,Day,Item,Qty,Price\n1,2025-01-31,a,1,\""+cell+"\"\n")[0]
			if want == 0 {
				assert.ErrorIs(t, r.err, importer.ErrInvalid, cell)
				continue
			}
			require.NoError(t, r.err, cell)
			assert.Equal(t, want, r.doc.Content.Payable, cell)
		}
	}
}

func TestCSVNeedsAnOrganization(t *testing.T) {
	t.Parallel()
	_, err := importer.OpenCSV(t.Context(), parseMapping(t, smallMapping), "", memory())
	assert.ErrorContains(t, err, "name the organization")
}

// TestCSVNoticesChanges: what the second pass reads is what the first one read.
func TestCSVNoticesChanges(t *testing.T) {
	t.Parallel()
	header := "No,Day,Item,Qty,Price\n"
	first := header + "1,2025-01-31,a,1,1\n1,2025-01-31,a,1,1\n"
	for _, second := range [][]string{
		{header + "1,2025-01-31,a,1,1\n"},
		{header + "2,2025-01-31,a,1,1\n"},
		{first + "2,2025-01-31,a,1,1\n"},
		{"No\n"},
		{},
		{first, first},
		{first + "\""},
	} {
		files := memory(first)
		c, err := importer.OpenCSV(t.Context(), parseMapping(t, smallMapping), "shop",
			func(ctx context.Context) iter.Seq2[importer.Source, error] { return files(ctx) })
		require.NoError(t, err)
		files = memory(second...)
		var last error
		for _, err := range c.Documents(t.Context()) {
			last = err
		}
		require.Error(t, last, second)
		assert.NotErrorIs(t, last, importer.ErrInvalid)
		assert.ErrorContains(t, last, "changed while they were read")
	}
}

// TestCSVRefusesDamagedArchives: the checksum that shows the damage comes after the files.
func TestCSVRefusesDamagedArchives(t *testing.T) {
	t.Parallel()
	damaged := func(context.Context) iter.Seq2[importer.Source, error] {
		return func(yield func(importer.Source, error) bool) {
			text := "No,Day,Item,Qty,Price\n1,2025-01-31,a,1,1\n"
			_ = yield(importer.Source{Name: "a.zip!a.csv", Reader: strings.NewReader(text)}, nil) &&
				yield(importer.Source{Name: "a.zip"}, errors.New("wrong checksum")) &&
				yield(importer.Source{Name: "b.csv", Reader: strings.NewReader(strings.Replace(text, "1", "2", 1))}, nil)
		}
	}
	c, err := importer.OpenCSV(t.Context(), parseMapping(t, smallMapping), "shop", damaged)
	require.NoError(t, err)
	assert.Equal(t, 1, c.Count())
	var results []csvResult
	for d, err := range c.Documents(t.Context()) {
		results = append(results, csvResult{d.Source, d.Document, err})
	}
	require.Len(t, results, 2)
	assert.Equal(t, "a.zip", results[0].source)
	require.ErrorIs(t, results[0].err, importer.ErrInvalid)
	assert.ErrorContains(t, results[0].err, "wrong checksum")
	require.NoError(t, results[1].err)
	assert.Equal(t, "2", results[1].doc.ID)
}

func TestCSVReaderFails(t *testing.T) {
	t.Parallel()
	broken := func(context.Context) iter.Seq2[importer.Source, error] {
		return func(yield func(importer.Source, error) bool) {
			reader := io.MultiReader(strings.NewReader("No,Day,Item,Qty,Price\n1,2025-01-31,a,1,1\n"),
				iotest.ErrReader(errors.New("broken disk")))
			yield(importer.Source{Name: "a.csv", Reader: reader}, nil)
		}
	}
	c, err := importer.OpenCSV(t.Context(), parseMapping(t, smallMapping), "shop", broken)
	require.NoError(t, err)
	for d, err := range c.Documents(t.Context()) {
		assert.Equal(t, "a.csv", d.Source)
		assert.ErrorIs(t, err, importer.ErrInvalid)
		assert.ErrorContains(t, err, "broken disk")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = importer.OpenCSV(ctx, parseMapping(t, smallMapping), "shop", memory(retailRows))
	assert.ErrorIs(t, err, context.Canceled)
}

// FuzzCSV: any files are imported or refused; what is imported is valid, whole, and adds up.
func FuzzCSV(f *testing.F) {
	small, err := importer.ParseMapping([]byte(smallMapping))
	require.NoError(f, err)
	full, err := importer.ParseMapping([]byte(fullMapping))
	require.NoError(f, err)
	f.Add(false, []byte("No,Day,Item,Qty,Price\n1,2025-01-31,a,2,1.005\n2,2025-01-31,a,2,1\n1,2025-01-31,b,-1,3\n"),
		[]byte("No,Day,Item,Qty,Price\n"))
	f.Add(false, []byte("\xef\xbb\xbfNo,Day,Item,Qty,Price\r\n\"1\",2025-01-31,\"a\"\"\n\",2,1\r\n"), []byte("x"))
	f.Add(true, []byte("acme;7;31.01.2025;5.2.2025;F;S;J\xfcrgen;Deutschland;1.300,50;n;X;Work;2;500,00;;190,00;19,0 %;VAT\n"), []byte("\n"))
	f.Add(true, []byte("acme;G8;31.01.2025;;Fr;S;;France;-10;;V;;;;-10;;;\n"), []byte("acme;7;1.1.2025\n"))
	f.Fuzz(func(t *testing.T, wide bool, a, b []byte) {
		m := small
		if wide {
			m = full
		}
		rows := 0
		for _, r := range readCSV(t, m, map[bool]string{false: "shop"}[wide], string(a), string(b)) {
			if r.err != nil {
				require.ErrorIs(t, r.err, importer.ErrInvalid)
				require.Zero(t, r.doc)
				continue
			}
			require.NoError(t, importer.Validate(r.doc))
			rows += len(r.doc.Content.Lines)
			if r.doc.Content.Attributes["totals"] == "derived" {
				require.Equal(t, r.doc.Content.Payable, sum(r.doc.Content), "wraps only where the sum does")
			}
		}
		require.LessOrEqual(t, rows, bytes.Count(a, []byte("\n"))+bytes.Count(b, []byte("\n"))+2)
	})
}
