package importer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// TestCSVOfPayments: the money of a payment, refund or payout is its amount, whichever column the
// mapping names.
func TestCSVOfPayments(t *testing.T) {
	t.Parallel()
	const head = "group: {key: Id}\ndocument:\n  date: Date\n  currency: {value: EUR}\n  direction: {value: in}\n"
	const file = "Id,Date,Amount\nbank-1,2026-01-05,119.00\n"
	for _, rest := range []string{
		"  types: [{type: payment}]\n  total: Amount\nlines: {net: Amount}\n",
		"  types: [{type: payment}]\nlines: {net: Amount}\n",
		"  types: [{type: payment}]\n  total: Amount\n",
		"  types: [{type: payment}]\n  amount: Amount\n",
		"  types: [{type: refund}]\n  amount: Amount\n",
		"  types: [{type: payout}]\n  total: Amount\n",
	} {
		documents := imported(t, head+rest, file)
		require.Len(t, documents, 1)
		assert.Equal(t, int64(11900), documents[0].Content.Amount, rest)
	}
	assert.Zero(t, imported(t, head+"  types: [{type: invoice}]\n  total: Amount\nlines: {net: Amount}\n",
		file)[0].Content.Amount)

	assert.Contains(t, refused(t, head+"  types: [{type: payment}]\n  amount: Amount\n",
		"Id,Date,Amount\nbank-1,2026-01-05,\n"), "Amount is empty")
	twice := file + "bank-1,2026-01-05,119.00\n"
	assert.Contains(t, refused(t, head+"  types: [{type: payment}]\n  amount: Amount\n", twice),
		"without lines a row is a document")
	assert.Contains(t, refused(t, head+"  types: [{type: payment}]\n  total: Amount\nlines: {net: Amount}\n", twice),
		"its 2 rows come to 23800")
	_, err := importer.ParseMapping([]byte(head + "  types: [{type: payment}]\n"))
	assert.ErrorContains(t, err, "add lines, document.total, or document.amount")
}

// TestCSVOfPayPal has fees with a minus, a refund, a conversion and a byte order mark.
func TestCSVOfPayPal(t *testing.T) {
	t.Parallel()
	const mapping = `numbers: {decimal: ",", thousands: "."}
group: {key: Transaktionscode}
document:
  number: Transaktionscode
  date: {column: Datum, layout: DD.MM.YYYY}
  currency: Währung
  counterparty: Name
  amount: Brutto
  fee: {column: Gebühr, negate: true}
  settled: {amount: Gutschrift, currency: {value: USD}}
  types:
    - {column: Brutto, prefix: "-", type: refund, direction: out, negate: true}
    - {type: payment, direction: in}
`
	documents := imported(t, mapping, byteOrderMark+
		`"Datum","Uhrzeit","Zeitzone","Name","Währung","Brutto","Gebühr","Netto","Transaktionscode","Gutschrift"
"05.01.2026","10:11:12","CET","Ada","EUR","1.119,00","-28,20","1.090,80","8AB12345","1.200,00"
"06.01.2026","10:11:12","CET","Ada","EUR","-119,00","2,96","-116,04","8AB12346",""
`)
	require.Len(t, documents, 2)
	paid, back := documents[0], documents[1]
	assert.Equal(t, models.DocumentPayment, paid.Type)
	assert.Equal(t, models.DirectionIn, paid.Direction)
	assert.Equal(t, []int64{111900, 2820}, []int64{paid.Content.Amount, paid.Content.Fee})
	assert.Equal(t, &models.Money{Amount: 120000, Currency: "USD"}, paid.Content.Settled)
	assert.Equal(t, models.DocumentRefund, back.Type)
	assert.Equal(t, models.DirectionOut, back.Direction)
	assert.Equal(t, []int64{11900, -296}, []int64{back.Content.Amount, back.Content.Fee}, "the fee came back: net 116.04")
	assert.Nil(t, back.Content.Settled)
	assert.Empty(t, paid.Content.Attributes, "no total is derived where only amounts are mapped")
}

func TestCSVOfStripe(t *testing.T) {
	t.Parallel()
	const mapping = `group: {key: id}
document:
  date: Created (UTC)
  currency: {column: Currency, values: {eur: EUR, usd: USD}}
  direction: {value: in}
  amount: Amount
  fee: Fee
  types: [{column: Type, is: charge, type: payment}, {column: Type, is: payout, type: payout, negate: true}]
`
	documents := imported(t, mapping, "id,Type,Created (UTC),Amount,Fee,Currency\n"+
		"ch_1,charge,2026-01-05 23:59,119.00,1.98,eur\npo_1,payout,2026-01-07T00:00:00Z,-117.02,0.00,eur\n")
	require.Len(t, documents, 2)
	assert.Equal(t, "2026-01-05", documents[0].IssueDate.String())
	assert.Equal(t, []int64{11900, 198}, []int64{documents[0].Content.Amount, documents[0].Content.Fee})
	assert.Equal(t, []int64{11702, 0}, []int64{documents[1].Content.Amount, documents[1].Content.Fee})
}

// TestCSVOfShopify has what belongs to an order on its first row alone, and prices that include the
// tax.
func TestCSVOfShopify(t *testing.T) {
	t.Parallel()
	const mapping = `group: {key: Name}
document:
  number: Name
  date: Created at
  currency: Currency
  counterparty: Billing Name
  total: Total
  types: [{type: invoice}]
lines: {description: Lineitem name, quantity: Lineitem quantity, price: Lineitem price, tax: {rate: Rate, included: true}}
`
	documents := imported(t, mapping,
		`Name,Financial Status,Currency,Total,Billing Name,Created at,Lineitem quantity,Lineitem name,Lineitem price,Rate
#1001,paid,EUR,35.70,Ada,2026-01-05 10:11:12 +0100,2,Cup,11.90,19%
#1001,,,,,,1,Plate,11.90,19%
`)
	require.Len(t, documents, 1)
	c := documents[0].Content
	assert.Equal(t, "Ada", c.Counterparty)
	assert.Equal(t, []models.Tax{{Rate: models.MustRate("19"), Base: 3000, Amount: 570}}, c.Taxes)
	assert.Equal(t, int64(3570), c.Payable)
	assert.Equal(t, map[string]string{"taxes": "derived"}, c.Attributes)
}

// TestCSVOfGermanBanks has lines above the header, years of two digits, a total row, and signs of
// the currency.
func TestCSVOfGermanBanks(t *testing.T) {
	t.Parallel()
	const mapping = `csv:
  separator: ";"
  encoding: windows-1252
  preamble: 3
  skip: [{column: Buchungstag, is: Saldo}]
numbers: {decimal: ",", thousands: "."}
group: {key: [Buchungstag, Referenz]}
document:
  date: {column: Buchungstag, layout: DD.MM.YY}
  value_date: {column: Wertstellung, layout: DD.MM.YY}
  currency: {value: EUR}
  counterparty: Empfänger
  total: Betrag
  types:
    - {column: Betrag, matches: "^[-(]|-", type: payment, direction: out, negate: true}
    - {type: payment, direction: in}
`
	file := "\"Konto\";\"DE00 1234\"\n\n\"Zeitraum: Januar\"\nBuchungstag;Wertstellung;Empf\xe4nger;Referenz;Betrag;\n" +
		"05.01.26;06.01.26;M\xfcller;R1;1.119,00 \x80;\n06.01.26;;Miete;R2;-800,50 \x80;\n07.01.26;;Strom;R3;80,50-;\nSaldo;;;;238,00;\n"
	documents := imported(t, mapping, file)
	require.Len(t, documents, 3)
	assert.Equal(t, "Müller", documents[0].Content.Counterparty)
	assert.Equal(t, "2026-01-06", documents[0].ValueDate.String())
	for i, want := range []struct {
		amount    int64
		direction models.Direction
	}{{111900, models.DirectionIn}, {80050, models.DirectionOut}, {8050, models.DirectionOut}} {
		assert.Equal(t, want.amount, documents[i].Content.Amount)
		assert.Equal(t, want.direction, documents[i].Direction)
	}
	assert.Contains(t, refused(t, strings.Replace(mapping, "preamble: 3", "preamble: 30", 1), file),
		"does csv.preamble count the lines right?")
	for _, wrong := range []string{"-1", "1001", "2.5", "0x3", "'3'"} {
		_, err := importer.ParseMapping([]byte(strings.Replace(mapping, "preamble: 3", "preamble: "+wrong, 1)))
		assert.ErrorIs(t, err, importer.ErrInvalidMapping, wrong)
	}
}

// TestCSVOfDATEV has a line of its own above the header, and the sign of an amount in a column
// beside it.
func TestCSVOfDATEV(t *testing.T) {
	t.Parallel()
	const mapping = `csv: {separator: ";", preamble: 1, encoding: windows-1252}
numbers: {decimal: ","}
group: {key: Belegfeld 1}
document:
  date: {column: Belegdatum, layout: DD.MM.YYYY}
  currency: WKZ Umsatz
  total: "Umsatz (ohne Soll/Haben-Kz)"
  types:
    - {column: Soll/Haben-Kennzeichen, is: H, type: credit_note, negate: true}
    - {type: invoice}
lines: {net: "Umsatz (ohne Soll/Haben-Kz)", description: Buchungstext}
`
	documents := imported(t, mapping, `"EXTF";700;21;"Buchungsstapel";13
"Umsatz (ohne Soll/Haben-Kz)";"Soll/Haben-Kennzeichen";"WKZ Umsatz";Belegdatum;"Belegfeld 1";"Buchungstext"
119,00;"S";"EUR";05.01.2026;"RE-1";"Rechnung"
-19,00;"H";"EUR";05.01.2026;"GU-1";"Gutschrift"
`)
	require.Len(t, documents, 2)
	assert.Equal(t, int64(11900), documents[0].Content.Payable)
	assert.Equal(t, models.DocumentCreditNote, documents[1].Type)
	assert.Equal(t, int64(1900), documents[1].Content.Payable)
}

// TestCSVApartByTheSameName: ids begin with a file's name, so two of one name are not taken for one.
func TestCSVApartByTheSameName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const rows = "No,Day,Item,Qty,Price\n1,2026-01-31,a,1,1\n"
	january, february := put(t, dir, "january/x.csv", []byte(rows)), put(t, dir, "february/x.csv", []byte(rows))
	m := parseMapping(t, strings.Replace(smallMapping, "group: {key: No}", "group: {key: No, files: apart}", 1))
	read := func(paths ...string) (got, failed []string) {
		sources, err := importer.FindSources(paths, ".csv")
		require.NoError(t, err)
		c, err := importer.OpenCSV(t.Context(), m, "shop", sources.All)
		require.NoError(t, err)
		for d, err := range c.Documents(t.Context()) {
			if err != nil {
				failed = append(failed, err.Error())
				continue
			}
			got = append(got, d.Document.ID)
		}
		return got, failed
	}
	got, failed := read(january, february)
	assert.Equal(t, []string{"x.csv/1"}, got)
	require.Len(t, failed, 1)
	assert.Contains(t, failed[0], "import a folder that has both")
	got, failed = read(dir)
	assert.Equal(t, []string{"february/x.csv/1", "january/x.csv/1"}, got)
	assert.Empty(t, failed)
}
