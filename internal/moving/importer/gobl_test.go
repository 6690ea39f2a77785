package importer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

const examples = "../../../../shared/data/gobl/examples"

func TestGOBLInvoice(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/invoice.json")
	require.NoError(t, err)
	got, err := importer.GOBL(data)
	require.NoError(t, err)
	value := models.NewDate(2025, time.March, 30)
	assert.Equal(t, importer.Imported{
		SupplierID: "EL123", SupplierName: "Sample Supplier", Regime: "gr",
		Document: models.Document{
			ID: "00000000-0000-7000-8000-000000000002", Type: models.DocumentInvoice, Direction: models.DirectionOut,
			Currency: "EUR", IssueDate: models.NewDate(2025, time.March, 31), ValueDate: &value,
			Content: models.Content{
				Number: "A-17", Counterparty: "Sample Customer", Country: "GR", Source: "gobl",
				Attributes: map[string]string{"gobl_type": "standard", "gobl_tags": "freelance"},
				Lines: []models.Line{
					{Kind: "item", Code: "X1", Description: "Work", Net: 10000, Rate: models.MustRate("24"), Category: "VAT"},
					// Both are 9.433962…; one takes the cent that the document's total of 108.87 has more.
					{Kind: "item", Description: "Book", Net: 944, Rate: models.MustRate("6"), Category: "VAT"},
					{Kind: "item", Description: "Book", Net: 943, Rate: models.MustRate("6"), Category: "VAT"},
					{
						Kind: "shipping", Code: "delivery", Description: "By post", Net: 1000, Rate: models.MustRate("24"),
						Category: "VAT",
					},
					{Kind: "discount", Description: "Regular customer", Net: -2000, Rate: models.MustRate("24"), Category: "VAT"},
				},
				Taxes: []models.Tax{
					{Category: "VAT", Rate: models.MustRate("24"), Base: 9000, Amount: 2160},
					{Category: "VAT", Rate: models.MustRate("6"), Base: 1887, Amount: 113},
					{Category: "VAT-surcharge", Rate: models.MustRate("0.5"), Base: 1887, Amount: 9},
					{Category: "WHT", Rate: models.MustRate("20"), Base: 10000, Amount: -2000, Retained: true},
				},
				Total: 11170, Prepaid: 1170, Payable: 10000, Rounding: 1,
				DueDate: models.NewDate(2025, time.April, 30), RefersTo: []string{"A-16"},
			},
		},
	}, got)
	assert.Equal(t, got.Document.Content.Total, sum(got.Document.Content)+got.Document.Content.Rounding)
}

// TestGOBLExamplesAddUp: lines, taxes and rounding make up what is payable and was prepaid, in all
// examples but the three whose own totals are off.
func TestGOBLExamplesAddUp(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "*", "out", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skipf("the GOBL examples are not at %s", examples)
	}
	off := map[string]int64{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := importer.GOBL(data)
		if err != nil {
			require.ErrorIs(t, err, importer.ErrNotBookable, file)
			continue
		}
		again, err := importer.GOBL(data)
		require.NoError(t, err)
		assert.Equal(t, got, again, "the same document gives the same id")
		assert.NotEmpty(t, got.SupplierID, file)
		folder, _, _ := strings.Cut(strings.TrimPrefix(file, examples+"/"), "/")
		assert.Equal(t, folder, got.Regime, file)
		c := got.Document.Content
		if d := sum(c) + c.Rounding - c.Payable - c.Prepaid; d != 0 && got.Document.Type != models.DocumentPayment {
			off[strings.TrimPrefix(file, examples+"/")] = d
		}
	}
	assert.Equal(t, map[string]int64{
		"be/out/invoice-peppol.json": 1, "es/out/invoice-es-es-vateqs-provider.json": 1,
		"es/out/invoice-es-bypass.json": -10,
	}, off)
}

func TestGOBLTypes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		schema, gobl string
		typ          models.DocumentType
		direction    models.Direction
		err          error
	}{
		{"bill/invoice", "standard", models.DocumentInvoice, models.DirectionOut, nil},
		{"bill/invoice", "corrective", models.DocumentInvoice, models.DirectionOut, nil},
		{"bill/invoice", "debit-note", models.DocumentInvoice, models.DirectionOut, nil},
		{"bill/invoice", "other", models.DocumentInvoice, models.DirectionOut, nil},
		{"bill/invoice", "credit-note", models.DocumentCreditNote, models.DirectionOut, nil},
		{"bill/invoice", "proforma", "", "", importer.ErrNotBookable},
		{"bill/payment", "receipt", models.DocumentPayment, models.DirectionIn, nil},
		{"bill/payment", "advice", models.DocumentPayment, models.DirectionOut, nil},
		{"bill/payment", "request", "", "", importer.ErrNotBookable},
		{"bill/order", "purchase", "", "", importer.ErrNotBookable},
		{"org/party", "", "", "", importer.ErrNotBookable},
	}
	for _, test := range tests {
		got, err := importer.GOBL([]byte(`{"$schema":"https://gobl.org/draft-0/` + test.schema + `","type":"` + test.gobl +
			`",
			"code":"1","issue_date":"2025-01-01","currency":"JPY","supplier":{"name":"S"},
			"total":"12","totals":{"total":"0","payable":"0"}}`))
		require.ErrorIs(t, err, test.err, "%s %s", test.schema, test.gobl)
		assert.Equal(t, test.typ, got.Document.Type)
		assert.Equal(t, test.direction, got.Document.Direction)
		if test.typ == models.DocumentPayment {
			assert.Equal(t, int64(12), got.Document.Content.Amount)
		}
	}
	_, err := importer.GOBL([]byte(`{"$schema":"https://gobl.org/draft-0/bill/order","type":"purchase"}`))
	var e *importer.NotBookableError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "https://gobl.org/draft-0/bill/order", e.Schema)
	assert.EqualError(t, err, `not a document we book: https://gobl.org/draft-0/bill/order of type "purchase"; skip it`)
}

func TestGOBLIDs(t *testing.T) {
	t.Parallel()
	id := func(fields string) string {
		got, err := importer.GOBL([]byte(`{"$schema":"https://gobl.org/draft-0/bill/payment","type":"receipt","issue_date":"2025-01-01","currency":"EUR","total":"1.00"` + fields + `}`))
		require.NoError(t, err)
		return got.Document.ID
	}
	assert.Equal(t, "u-1", id(`,"uuid":"u-1","series":"A","code":"7"`))
	assert.Equal(t, "receipt/A/7/ES123",
		id(`,"series":"A","code":"7","supplier":{"tax_id":{"country":"ES","code":"123"}}`))
	assert.Regexp(t, "^sha256-[0-9a-f]{64}$", id(`,"code":"7"`))
	assert.Equal(t, id(`,"code":"7"`), id(`, "code" : "7" `))
	assert.NotEqual(t, id(`,"code":"7"`), id(`,"code":"8"`))
}

func TestGOBLRefuses(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/invoice.json")
	require.NoError(t, err)
	for change, message := range map[string]string{
		`"currency": "EUR"=>"currency": "EUX"`:                         "ISO 4217",
		`"issue_date": "2025-03-31"=>"issue_date": "31.3.2025"`:        "YYYY-MM-DD",
		`"issue_date": "2025-03-31",=>`:                                "issue_date",
		`"payable": "111.70"=>"payable": "1e5"`:                        "not a decimal number",
		`"total": "108.87"=>"total": "99999999999999999999"`:           "64 bits",
		`"totals": {=>"total_": {`:                                     "no totals",
		`"percent": "24.0%"}], "total"=>"percent": "x"}], "total"`:     "not a decimal number",
		`"percent": "24.0%"}], "total"=>"percent": "-100%"}], "total"`: "cannot be included",
		`Sample Customer=>Sample\u0000Customer`:                        "U+0000",
		`gobl.org/draft-0/bill=>example.org/bill`:                      "$schema",
		`"lines": [=>"lines": 7, "x": [`:                               "cannot unmarshal",
	} {
		from, to, _ := strings.Cut(change, "=>")
		require.Contains(t, string(data), from)
		_, err := importer.GOBL([]byte(strings.Replace(string(data), from, to, 1)))
		require.ErrorIs(t, err, importer.ErrInvalid, change)
		assert.ErrorContains(t, err, message, change)
	}
	for _, junk := range []string{"", "null", "[]", "{}", `{"$schema":"https://gobl.org/draft-0/envelope"}`} {
		_, err := importer.GOBL([]byte(junk))
		require.ErrorIs(t, err, importer.ErrInvalid, junk)
	}
}

func sum(c models.Content) int64 {
	var s int64
	for _, l := range c.Lines {
		s += l.Net
	}
	for _, t := range c.Taxes {
		s += t.Amount
	}
	return s
}

func FuzzGOBL(f *testing.F) {
	data, err := os.ReadFile("testdata/invoice.json")
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"$schema":"https://gobl.org/draft-0/bill/payment","type":"receipt","issue_date":"2025-01-01","currency":"KWD","total":"-1.0005"}`))
	f.Add([]byte(`{"$schema":"https://gobl.org/draft-0/envelope","doc":{"$schema":"https://gobl.org/draft-0/org/party"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := importer.GOBL(data)
		if err != nil {
			require.True(t, errors.Is(err, importer.ErrInvalid) || errors.Is(err, importer.ErrNotBookable), "%v", err)
			return
		}
		got.Document.OrgID = "acme"
		require.NoError(t, importer.Validate(got.Document))
		_, err = json.Marshal(got.Document)
		require.NoError(t, err)
	})
}

// A credit note that is negative as a whole becomes a positive one, whatever it consists of; a
// negative invoice stays as it is.
func TestGOBLCreditNotesArePositive(t *testing.T) {
	t.Parallel()
	const source = `{"$schema": "https://gobl.org/draft-0/bill/invoice", "type": %q, "uuid": "u", "issue_date": "2025-03-31", "currency": "EUR",
 "lines": [{"item": {"name": "Work"}, "taxes": [{"cat": "VAT", "percent": "19%%"}], "total": "-100.00"}, {"item": {"name": "Fee"}, "total": "10.00"}],
 "totals": {"total": "-90.00", "taxes": {"categories": [
   {"code": "VAT", "rates": [{"base": "-100.00", "percent": "19%%", "amount": "-19.00"}]},
   {"code": "IRPF", "retained": true, "rates": [{"base": "-100.00", "percent": "15%%", "amount": "-15.00"}]}]}, "payable": "-94.00"}}`
	for kind, sign := range map[string]int64{"credit-note": 1, "standard": -1} {
		got, err := importer.GOBL(fmt.Appendf(nil, source, kind))
		require.NoError(t, err, kind)
		c := got.Document.Content
		assert.Equal(t, []int64{sign * 10000, sign * -1000}, []int64{c.Lines[0].Net, c.Lines[1].Net})
		assert.Equal(t, []int64{sign * 1900, sign * -1500}, []int64{c.Taxes[0].Amount, c.Taxes[1].Amount})
		assert.Equal(t, []int64{sign * 9400, sign * 9400}, []int64{c.Total, c.Payable})
	}
}
