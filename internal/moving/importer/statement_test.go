package importer_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// movements reads a statement, one text for each movement or error.
func movements(read iter.Seq2[importer.Movement, error]) []string {
	var out []string
	for m, err := range read {
		if err != nil {
			out = append(out, m.Place+": "+err.Error())
			continue
		}
		d := &m.Document
		c := &d.Content
		value := "-"
		if d.ValueDate != nil {
			value = d.ValueDate.String()
		}
		text := fmt.Sprintf("%s: %s %s %d fee %d %s, %s value %s, %s", m.Place, d.Type, d.Direction, c.Amount, c.Fee, d.Currency,
			d.IssueDate, value, c.Counterparty)
		for _, name := range []string{
			"bank_account", "bank_reference", "code", "counterparty_account", "end_to_end", "instructed", "mandate", "reference", "text",
		} {
			if v, ok := c.Attributes[name]; ok {
				text += fmt.Sprintf("; %s %s", name, v)
			}
		}
		if len(c.RefersTo) > 0 {
			text += "; refers to " + strings.Join(c.RefersTo, ",")
		}
		out = append(out, text)
	}
	return out
}

func camt(text string) iter.Seq2[importer.Movement, error] {
	return importer.Camt(strings.NewReader(text))
}

func mt940(text string) iter.Seq2[importer.Movement, error] {
	return importer.MT940(strings.NewReader(text))
}

func ids(t *testing.T, read iter.Seq2[importer.Movement, error]) []string {
	t.Helper()
	var out []string
	for m, err := range read {
		if !errors.Is(err, importer.ErrNotBookable) {
			require.NoError(t, err)
			out = append(out, m.Document.ID)
		}
	}
	return out
}

func TestCamt(t *testing.T) {
	t.Parallel()
	const account = "bank_account DE89370400440532013000"
	assert.Equal(t, []string{
		`statement 2026-17: entry 6: not a document we book: an entry of type "PDNG"; skip it`,
		"entry 1: payment in 11900 fee 0 EUR, 2026-01-05 value 2026-01-06, Sample Customer; " + account + "; bank_reference REF-1; " +
			"code PMNT/RCDT/ESCT; counterparty_account NL91ABNA0417164300; end_to_end A-17; reference RF18539007547034; text Invoice A-17; refers to RF18539007547034",
		"entry 2, transaction 1: payment out 4000 fee 50 EUR, 2026-01-05 value 2026-01-05, Landlord; " + account +
			"; bank_reference REF-2; code 191; end_to_end P-1",
		"entry 2, transaction 2: payment out 2000 fee 0 EUR, 2026-01-05 value 2026-01-05, Sample Supplier; " + account +
			"; bank_reference REF-2; code 191; end_to_end P-2; instructed 21.50 USD",
		"entry 3: refund out 1900 fee 0 EUR, 2026-01-05 value -, Another Customer; " + account + "; mandate MANDATE-3; text Returned direct debit",
		"entry 4: payment out 500 fee 0 EUR, 2026-01-05 value -, ; " + account + "; text Parking",
		"entry 5: payment out 500 fee 0 EUR, 2026-01-05 value -, ; " + account + "; text Parking",
	}, movements(camt(testFile(t, "statement.camt.xml"))))
}

func TestMT940(t *testing.T) {
	t.Parallel()
	const account = "bank_account 37040044/0532013000"
	assert.Equal(t, []string{
		"line 6: payment in 11900 fee 0 EUR, 2026-01-01 value 2025-12-31, Sample Customer BV; " + account + "; bank_reference REF-1; " +
			"code 166; counterparty_account NL91ABNA0417164300; end_to_end A-17; text Invoice A-17, second reminder",
		"line 9: payment out 1200 fee 50 EUR, 2026-01-02 value 2026-01-01, Landlord; " + account + "; code TRF; " +
			"counterparty_account NL02RABO0123456789; end_to_end P-1; text Rent of January /OCMT/EUR12,00//CHGS/EUR0,50/",
		// A month of 30 days.
		"line 13: refund out 1900 fee 0 EUR, 2026-01-02 value 2026-02-28, ; " + account + "; code MSC; text Returned by the customer's bank",
		"line 16: payment out 500 fee 0 EUR, 2026-01-02 value 2026-01-02, ; " + account + "; code MSC; text Parking",
		"line 18: payment out 500 fee 0 EUR, 2026-01-02 value 2026-01-02, ; " + account + "; code MSC; text Parking",
	}, movements(mt940(testFile(t, "statement.sta"))))
}

// TestStatementsOverlap: a movement has one id, in whatever statement it stands; two that do not
// differ have two.
func TestStatementsOverlap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		whole, part string
		read        func(string) iter.Seq2[importer.Movement, error]
		in          int
	}{
		"camt": {testFile(t, "statement.camt.xml"), func() string {
			text := testFile(t, "statement.camt.xml")
			from, to := strings.Index(text, "<b:Ntry>\n  <b:NtryRef>"), strings.Index(text, "<b:Ntry>\n  <b:Amt Ccy=\"EUR\">60.50")
			// Without the first entry, of an older version, with another number.
			text = text[:from] + text[to:]
			return strings.NewReplacer(">1000.00<", ">1119.00<", "2026-17", "2026-18", ".001.08", ".001.02",
				"<b:Cd>BOOK</b:Cd>", "BOOK", "<b:Cd>PDNG</b:Cd>", "PDNG").Replace(text)
		}(), camt, 6},
		"mt940": {testFile(t, "statement.sta"), func() string {
			text := testFile(t, "statement.sta")
			from, to := strings.Index(text, ":61:251231"), strings.Index(text, ":61:260101")
			text = text[:from] + text[to:]
			return strings.NewReplacer("C251230EUR1000,00", "C251231EUR1119,00", "STARTUMSE", "ANOTHER").Replace(text)
		}(), mt940, 5},
	} {
		whole, part := ids(t, c.read(c.whole)), ids(t, c.read(c.part))
		assert.Len(t, whole, c.in, name)
		assert.Equal(t, whole[1:], part, name)
		slices.Sort(whole)
		assert.Len(t, slices.Compact(whole), c.in, name)
	}
}

// TestStatementThatContradictsItself: nothing of it is imported, and the next statement is.
func TestStatementThatContradictsItself(t *testing.T) {
	t.Parallel()
	wrong := map[string][]string{
		"camt": movements(camt(strings.Replace(testFile(t, "statement.camt.xml"), ">1029.50<", ">1030.00<", 1)))[1:],
		"mt940": movements(mt940(strings.Replace(testFile(t, "statement.sta"), ":62F:C260102EUR1077,50", ":62F:C260102EUR1078,00", 1) +
			":20:NEXT\n:25:1\n:60F:C260102EUR1,\n:62F:C260102EUR1,\n-")),
	}
	want := map[string]string{
		"camt": "statement 2026-17: invalid document: the closing balance is stated as 1030.00 EUR, but the opening balance of " +
			"1000.00 EUR and the entries come to 1029.50 EUR: a difference of 0.50 EUR; get the whole statement from the bank",
		"mt940": "line 2: statement STARTUMSE: invalid document: the closing balance is stated as 1078.00 EUR, but the opening balance of " +
			"1000.00 EUR and the entries come to 1077.50 EUR: a difference of 0.50 EUR; get the whole statement from the bank",
	}
	for format, got := range wrong {
		assert.Equal(t, []string{want[format]}, got)
	}
	for _, err := range mt940(strings.Replace(testFile(t, "statement.sta"), ":62F:C260102EUR1077,50", ":62F:C260102EUR1078,00", 1)) {
		require.ErrorIs(t, err, importer.ErrInvalid)
		var code *posting.Error
		require.ErrorAs(t, err, &code)
		assert.Equal(t, models.CodeTotalsDiffer, code.Code)
	}
}

// TestStatementThatIsRefused: what cannot be read refuses its statement, with its place.
func TestStatementThatIsRefused(t *testing.T) {
	t.Parallel()
	xml, sta := testFile(t, "statement.camt.xml"), testFile(t, "statement.sta")
	for _, c := range []struct {
		read           func(string) iter.Seq2[importer.Movement, error]
		text, old, new string
		want           string
	}{
		{camt, xml, "<b:Document", "<!DOCTYPE x SYSTEM \"x.dtd\"><b:Document", "document type"},
		{camt, xml, "</b:BkToCstmrStmt></b:Document>", "", "it is not XML"},
		{camt, xml, "camt.053", "camt.054", "not a document we book: camt.054"},
		{camt, xml, "camt.053", "pain.001", "it has no statement of camt.053"},
		{camt, xml, ">119.00<", ">119,00<", "entry 1: invalid document: \"119,00\" is not a decimal number"},
		{camt, xml, ">119.00<", ">119.001<", "entry 1: invalid document: 119.001 EUR is more precise than EUR is"},
		{camt, xml, "<b:CdtDbtInd>CRDT</b:CdtDbtInd><b:RvslInd>", "<b:CdtDbtInd>credit</b:CdtDbtInd><b:RvslInd>", "want CRDT or DBIT"},
		{camt, xml, "2026-01-05</b:Dt></b:BookgDt>", "2026-13-05</b:Dt></b:BookgDt>", "entry 1: invalid document: the booking date"},
		{camt, xml, "<b:IBAN>DE89 3704 0044 0532 0130 00</b:IBAN>", "", "names no account"},
		{camt, xml, "<b:Amt Ccy=\"EUR\">5.00", "<b:Amt Ccy=\"USD\">5.00", `it has no opening and closing balance in "USD"`},
		{mt940, sta, ":20:", ":21:", "no line begins with :20:"},
		{mt940, sta, ":62F:", ":63F:", "it has no closing balance (field 62F); is the file cut off?"},
		{mt940, sta, ":60F:", ":63F:", "the opening balance (field 60F) must stand above it"},
		{mt940, sta, ":25:37040044/0532013000", ":25:", "it names no account"},
		{mt940, sta, "CR119,00", "CR119'00", "is not an entry such as"},
		{mt940, sta, ":61:251231", ":61:251331", "line 6: field 61: invalid document: \"251331\" is not a date"},
		{mt940, sta, "C251230EUR", "C251230", "is not a balance such as"},
		{mt940, sta, "EUR", "XXX", "not listed in ISO 4217"},
		{mt940, sta, ":28C:", ":34F:", "not a document we book: MT942"},
	} {
		got := movements(c.read(strings.Replace(c.text, c.old, c.new, 1)))
		require.NotEmpty(t, got, c.want)
		assert.Contains(t, got[len(got)-1], c.want)
	}
}

// TestStatementsOfPages: interim balances stand for those of the whole statement.
func TestStatementsOfPages(t *testing.T) {
	t.Parallel()
	xml := strings.NewReplacer("OPBD", "ITBD", "CLBD", "ITBD").Replace(testFile(t, "statement.camt.xml"))
	assert.Len(t, ids(t, camt(xml)), 6)
	assert.Contains(t, movements(camt(strings.Replace(xml, ">1029.50<", ">1030.50<", 1)))[1], "a difference of 1.00 EUR")
	sta := strings.NewReplacer(":60F:", ":60M:", ":62F:", ":62M:").Replace(testFile(t, "statement.sta"))
	assert.Len(t, ids(t, mt940(sta)), 5)
}

// TestMT940InOtherEncodings: banks write Windows-1252, and UTF-8.
func TestMT940InOtherEncodings(t *testing.T) {
	t.Parallel()
	sta := testFile(t, "statement.sta")
	for _, street := range []string{"Stra\xdfe", "Straße"} {
		got := movements(mt940("\ufeff" + strings.ReplaceAll(strings.Replace(sta, "Returned by", street, 1), "\n", "\r\n")))
		assert.Contains(t, got[2], "Straße")
	}
}

// FuzzStatement: no text makes a reader panic, and what is read has amounts and ids.
func FuzzStatement(f *testing.F) {
	f.Add(testFile(f, "statement.camt.xml"))
	f.Add(testFile(f, "statement.sta"))
	f.Add(":20:1\n:25:2\n:60F:C260101EUR0,\n:61:260101D1,N\n:86:999?20a?x?31\n:61:260101C1NTRF//\n:62F:C260101EUR0,")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []iter.Seq2[importer.Movement, error]{camt(text), mt940(text)} {
			seen := map[string]bool{}
			for m, err := range read {
				if err == nil && (m.Document.ID == "" || m.Document.Content.Attributes["bank_account"] == "") {
					t.Errorf("it has no id or no account: %+v", m.Document)
				}
				seen[m.Document.ID] = true
			}
		}
	})
}
