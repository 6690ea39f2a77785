package importer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

const ublExamples = "../../../../shared/data/ubl"

// wantEInvoice is the invoice that testdata has in UBL and in CII.
func wantEInvoice(source string) importer.Imported {
	value := models.NewDate(2025, time.March, 28)
	standard := models.MustRate("19")
	return importer.Imported{
		SupplierID: "DE123", SupplierName: "Sample Supplier", Regime: "de",
		Document: models.Document{
			ID: "380/A-17/DE123", Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
			IssueDate: models.NewDate(2025, time.March, 31), ValueDate: &value,
			Content: models.Content{
				Number: "A-17", Counterparty: "Sample Customer", Country: "DE", Source: source,
				Attributes: map[string]string{
					"type_code": "380", "profile": "urn:cen.eu:en16931:2017", "due_date": "2025-04-30", "reference": "dept 3",
					"order": "PO-1", "preceding": "A-9",
				},
				Lines: []models.Line{
					// The line's net amount of 95.00 is after its discount.
					{Kind: "item", Code: "X1", Description: "Screws", Net: 10000, Rate: standard, Category: "VAT", TaxCode: "S"},
					{Kind: "discount", Code: "X1", Description: "Damaged", Net: -500, Rate: standard, Category: "VAT", TaxCode: "S"},
					{Kind: "item", Code: "4000000000006", Description: "Work", Net: 20000, Category: "VAT", TaxCode: "AE"},
					{Kind: "discount", Code: "95", Description: "Regular customer", Net: -1000, Rate: standard, Category: "VAT", TaxCode: "S"},
					{Kind: "shipping", Code: "DL", Description: "By post", Net: 500, Rate: standard, Category: "VAT", TaxCode: "S"},
				},
				Taxes: []models.Tax{
					{Category: "VAT", Code: "S", Rate: standard, Base: 9000, Amount: 1710},
					{Category: "VAT", Code: "AE", Base: 20000, Exemption: "Reverse charge"},
				},
				Total: 30710, Prepaid: 10000, Rounding: -10, Payable: 20700,
				DueDate: models.NewDate(2025, time.April, 30), RefersTo: []string{"A-9"},
			},
		},
	}
}

func TestEInvoice(t *testing.T) {
	t.Parallel()
	cii := []byte(testFile(t, "invoice.cii.xml"))
	for source, convert := range map[string]func() (importer.Imported, error){
		"ubl": func() (importer.Imported, error) {
			return importer.UBL(strings.NewReader(testFile(t, "invoice.ubl.xml")))
		},
		"cii": func() (importer.Imported, error) { return importer.CII(bytes.NewReader(cii)) },
		"facturx": func() (importer.Imported, error) {
			file := testFile(t, "invoice.pdf")
			assert.Equal(t, string(pdfWith(map[string][]byte{"factur-x.xml": cii})), file)
			return importer.FacturX(strings.NewReader(file), int64(len(file)))
		},
	} {
		got, err := convert()
		require.NoError(t, err, source)
		assert.Equal(t, wantEInvoice(source), got)
	}
}

// TestPublishedUBL: each of the published examples adds up.
func TestPublishedUBL(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(ublExamples, "*.xml"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skipf("the published examples of UBL are not at %s", ublExamples)
	}
	for _, file := range files {
		opened, err := os.Open(file)
		require.NoError(t, err)
		got, err := importer.UBL(opened)
		require.NoError(t, opened.Close())
		if strings.HasSuffix(file, "custom-namespace-prefixes.xml") { // of UBL 2.0, before EN 16931
			require.ErrorContains(t, err, "the total without tax (BT-109) is stated as 90.00 GBP, but lines, allowances and charges "+
				"add up to 100.00 GBP")
			continue
		}
		require.NoError(t, err, file)
		c := got.Document.Content
		assert.Equal(t, c.Payable+c.Prepaid, sum(c)+c.Rounding, file)
		want := models.DocumentInvoice
		if strings.Contains(file, "credit") {
			want = models.DocumentCreditNote
		}
		assert.Equal(t, want, got.Document.Type, file)
	}
}

// TestEInvoiceThatContradictsItself: each total that does not follow from its parts is named with
// the difference.
func TestEInvoiceThatContradictsItself(t *testing.T) {
	t.Parallel()
	ubl := testFile(t, "invoice.ubl.xml")
	for stated, want := range map[string]string{
		"LineExtensionAmount currencyID=\"EUR\">295.00": "the lines' net total (BT-106) is stated as 296.00 EUR, but the lines add up to 295.00 EUR: a difference of 1.00 EUR",
		"AllowanceTotalAmount currencyID=\"EUR\">10.00": "the total of allowances (BT-107) is stated as 11.00 EUR",
		"ChargeTotalAmount currencyID=\"EUR\">5.00":     "the total of charges (BT-108) is stated as 6.00 EUR",
		"TaxExclusiveAmount currencyID=\"EUR\">290.00":  "the total without tax (BT-109) is stated as 291.00 EUR",
		"TaxAmount currencyID=\"EUR\">17.10":            "the total of tax (BT-110) is stated as 18.10 EUR",
		"TaxInclusiveAmount currencyID=\"EUR\">307.10":  "the total with tax (BT-112) is stated as 308.10 EUR",
		"PayableAmount currencyID=\"EUR\">207.00":       "the amount to pay (BT-115) is stated as 208.00 EUR, but total, prepaid amount and rounding come to 207.00 EUR",
	} {
		name, amount, _ := strings.Cut(stated, ">")
		var units, cents int
		_, err := fmt.Sscanf(amount, "%d.%d", &units, &cents)
		require.NoError(t, err)
		require.Contains(t, ubl, stated)
		_, err = importer.UBL(strings.NewReader(strings.Replace(ubl, stated, fmt.Sprintf("%s>%d.%02d", name, units+1, cents), 1)))
		require.ErrorIs(t, err, importer.ErrInvalid)
		var code *posting.Error
		require.ErrorAs(t, err, &code)
		assert.Equal(t, models.CodeTotalsDiffer, code.Code)
		assert.ErrorContains(t, err, want)
	}
}

// TestEInvoiceThatIsRefused: what is not there, or hides something, is named.
func TestEInvoiceThatIsRefused(t *testing.T) {
	t.Parallel()
	ubl, cii := testFile(t, "invoice.ubl.xml"), testFile(t, "invoice.cii.xml")
	fromUBL := func(text string) (importer.Imported, error) { return importer.UBL(strings.NewReader(text)) }
	fromCII := func(text string) (importer.Imported, error) { return importer.CII(strings.NewReader(text)) }
	for _, c := range []struct {
		convert   func(string) (importer.Imported, error)
		text, old string
		new       string
		want      string
	}{
		{fromUBL, ubl, "<u:Invoice", "<!DOCTYPE x SYSTEM \"x.dtd\"><u:Invoice", "document type"},
		{fromUBL, ubl, "</u:Invoice>", "", "it is not XML"},
		{fromUBL, ubl, "</u:Invoice>", "</u:Invoice><x/>", "a second one follows"},
		{fromUBL, ubl, "<ID>A-17</ID>", strings.Repeat("<x>", 200), "nested more than 100 deep"},
		{fromUBL, ubl, "<ID>A-17</ID>", "", "no number (BT-1)"},
		{fromUBL, ubl, "2025-03-31", "31.03.2025", "the issue date (BT-2)"},
		{fromUBL, strings.ReplaceAll(ubl, "EUR", "XXX"), "", "", "the currency (BT-5)"},
		{fromUBL, ubl, "currencyID=\"EUR\">95.00", "currencyID=\"USD\">95.00", `a line's net amount (BT-131) is in "USD", and the document in EUR`},
		{fromUBL, ubl, ">95.00<", ">95,00<", "is not a decimal number"},
		{fromUBL, ubl, ">95.00<", "><", "a line's net amount (BT-131) is missing"},
		{fromUBL, ubl, "<ChargeIndicator>false</ChargeIndicator>", "", "neither that it is one (true) nor the other (false)"},
		{fromUBL, ubl, "<InvoiceTypeCode>380", "<InvoiceTypeCode>325", "not a document we book"},
		{fromUBL, cii, "", "", "daybook import cii"},
		{fromCII, ubl, "", "", "daybook import ubl"},
		{fromCII, cii, "CrossIndustryInvoice:100", "CrossIndustryInvoice:1", "not a document we book"},
		{fromCII, `<x:CrossIndustryDocument xmlns:x="urn:ferd:CrossIndustryDocument:invoice:1p0"/>`, "", "", "ZUGFeRD 1.0"},
		{fromCII, "no XML", "", "", "it is not XML"},
	} {
		_, err := c.convert(strings.Replace(c.text, c.old, c.new, 1))
		require.Error(t, err, c.want)
		assert.ErrorContains(t, err, c.want)
		assert.Equal(t, strings.HasPrefix(c.want, "not a document"), errors.Is(err, importer.ErrNotBookable), c.want)
		assert.NotEqual(t, errors.Is(err, importer.ErrInvalid), errors.Is(err, importer.ErrNotBookable), c.want)
	}
}

// TestEInvoiceInOtherEncodings: a file may say how it is encoded.
func TestEInvoiceInOtherEncodings(t *testing.T) {
	t.Parallel()
	ubl := strings.Replace(testFile(t, "invoice.ubl.xml"), "UTF-8", "ISO-8859-1", 1)
	got, err := importer.UBL(strings.NewReader(strings.Replace(ubl, "Screws", "Schl\xfcssel", 1)))
	require.NoError(t, err)
	assert.Equal(t, "Schlüssel", got.Document.Content.Lines[0].Description)
	_, err = importer.UBL(strings.NewReader("\ufeff" + testFile(t, "invoice.ubl.xml")))
	require.NoError(t, err)
	_, err = importer.UBL(strings.NewReader(strings.Replace(ubl, "ISO-8859-1", "no-such", 1)))
	assert.ErrorContains(t, err, "save the file as UTF-8")
}

// TestElementsOfAnEInvoice are bounded: each takes many times its place in the file.
func TestElementsOfAnEInvoice(t *testing.T) {
	t.Parallel()
	ubl := testFile(t, "invoice.ubl.xml")
	_, err := importer.UBL(strings.NewReader(strings.Replace(ubl, "</u:Invoice>", strings.Repeat("<x/>", 100_000)+"</u:Invoice>", 1)))
	require.NoError(t, err)
	_, err = importer.UBL(strings.NewReader(strings.Replace(ubl, "</u:Invoice>", strings.Repeat("<x/>", 200_000)+"</u:Invoice>", 1)))
	require.ErrorIs(t, err, importer.ErrInvalid)
	assert.ErrorContains(t, err, "it is too large")
}

func TestFacturXThatIsRefused(t *testing.T) {
	t.Parallel()
	for want, file := range map[string][]byte{
		"not a PDF that can be read": []byte("no PDF"),
		"no file in it":              pdfWith(nil),
		"but picture.png":            pdfWith(map[string][]byte{"picture.png": []byte("x")}),
		"it is not XML":              pdfWith(map[string][]byte{"factur-x.xml": []byte("x")}),
	} {
		_, err := importer.FacturX(bytes.NewReader(file), int64(len(file)))
		require.ErrorIs(t, err, importer.ErrInvalid)
		assert.ErrorContains(t, err, want)
	}
}

// FuzzEInvoice: no text makes a reader panic, and what is read adds up.
func FuzzEInvoice(f *testing.F) {
	for _, name := range []string{"invoice.ubl.xml", "invoice.cii.xml"} {
		f.Add(testFile(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, convert := range []func(io.Reader) (importer.Imported, error){importer.UBL, importer.CII} {
			got, err := convert(strings.NewReader(text))
			if c := got.Document.Content; err == nil && c.Payable+c.Prepaid != sum(c)+c.Rounding {
				t.Errorf("it does not add up: %+v", c)
			}
		}
	})
}

func testFile(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return string(data)
}

// pdfWith returns a PDF without pages that has files in it.
func pdfWith(files map[string][]byte) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(text string) int {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
		return len(offsets)
	}
	out.WriteString("%PDF-1.7\n")
	names := ""
	for name, data := range files {
		stream := object(fmt.Sprintf("<</Type /EmbeddedFile /Length %d>>\nstream\n%s\nendstream", len(data), data))
		spec := object(fmt.Sprintf("<</Type /Filespec /F (%s) /UF (%s) /EF <</F %d 0 R>>>>", name, name, stream))
		names += fmt.Sprintf("(%s) %d 0 R ", name, spec)
	}
	root := object("<</Type /Catalog /Names <</EmbeddedFiles <</Names [" + names + "]>>>>>>")
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d /Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, root, start)
	return out.Bytes()
}
