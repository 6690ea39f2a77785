package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// sta is a statement in MT940 with one entry of 10 EUR, which the lines state.
func sta(lines ...string) string {
	return ":20:A\n:25:1\n:28C:1\n:60F:C260101EUR0,\n" + strings.Join(lines, "\n") + "\n:62F:C260105EUR10,\n-\n"
}

// TestMT940OfBanks: what banks write beside the standard.
func TestMT940OfBanks(t *testing.T) {
	t.Parallel()
	const entry, read = ":61:2601050105C10,NTRFNONREF", "line 5: payment in 1000 fee 0 EUR, 2026-01-05 value 2026-01-05, "
	for name, c := range map[string]struct{ text, want string }{
		"a line for each part": {
			sta(entry, ":86:166?00GUTSCHRIFT", "?20SVWZ+Rechnungen 17 vom Janu", "?21ar 2026 und 18 vom ", "?22Februar",
				"?32Mueller und Soehne Baubetri", "?33eb GmbH"),
			read + "Mueller und Soehne Baubetrieb GmbH; bank_account 1; code 166; text Rechnungen 17 vom Januar 2026 und 18 vom Februar",
		},
		"several fields 86": {
			sta(entry, ":86:First line", ":86:Invoice 17"), read + "; bank_account 1; code TRF; text First line Invoice 17",
		},
		"a field 86 with the code alone": {
			sta(entry, ":86:034", ":86:034~00PRZELEW~20zaplata~32Jan Kowalski"),
			read + "Jan Kowalski; bank_account 1; code 034; text zaplata",
		},
		"the sums of an interim report": {
			sta(entry, ":86:x") + ":90D:0EUR0,\n:90C:1EUR10,\n", read + "; bank_account 1; code TRF; text x",
		},
		"sums within the statement": {
			sta(entry, ":86:x", ":90D:0EUR0,", ":90C:1EUR10,"), read + "; bank_account 1; code TRF; text x",
		},
		"where the reference stands": {
			sta(":61:2601050105C10,NTRFEREF//R", ":86:x"), read + "; bank_account 1; bank_reference R; code TRF; text x",
		},
	} {
		assert.Equal(t, []string{c.want}, movements(mt940(c.text)), name)
	}
}

// camtOf is a file in camt.053 with statements.
func camtOf(statements ...string) string {
	return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>` + strings.Join(statements, "") +
		`</BkToCstmrStmt></Document>`
}

// camtStatement is a statement with an entry of 7 EUR between two balances.
func camtStatement(account, from, opening, to, closing, status string) string {
	const balance = `<Bal><Tp><CdOrPrtry><Cd>%s</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">%s</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>`
	return fmt.Sprintf(`<Stmt><Id>1</Id><Acct><Id><IBAN>%s</IBAN></Id></Acct>`+balance+balance+
		`<Ntry><Amt Ccy="EUR">7</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>%s</Sts><BookgDt><Dt>2026-01-05</Dt></BookgDt></Ntry></Stmt>`,
		account, from, opening, to, closing, status)
}

// TestCamtStatus: an entry of a status of the bank's own is not booked.
func TestCamtStatus(t *testing.T) {
	t.Parallel()
	for status, booked := range map[string]bool{
		"BOOK": true, "<Cd>BOOK</Cd>": true, "": true, "<Cd>PDNG</Cd>": false, "<Prtry>PENDING</Prtry>": false, "INFO": false,
	} {
		got := movements(camt(camtOf(camtStatement("A", "OPAV", "0", "CLAV", "0", status))))
		assert.Len(t, got, 1, status)
		assert.Equal(t, booked, strings.HasPrefix(got[0], "entry 1: payment"), status)
	}
}

// TestPagesCountTogether: movements that do not differ are as many as they are when they stand on
// two pages of a statement, and one when they stand in two statements.
func TestPagesCountTogether(t *testing.T) {
	t.Parallel()
	page := func(from, opening, to, closing string) string {
		return ":20:A\n:25:1\n:60" + from + ":C260105EUR" + opening + ",\n:61:2601050105C7,NTRFNONREF\n:86:x\n:62" + to +
			":C260105EUR" + closing + ",\n-\n"
	}
	stmt := func(account, from, opening, to, closing string) string {
		return camtStatement(account, from, opening, to, closing, "BOOK")
	}
	for name, c := range map[string]struct {
		ids  []string
		want int
	}{
		"mt940, pages":        {ids(t, mt940(page("F", "0", "M", "7")+page("M", "7", "M", "14")+page("M", "14", "F", "21"))), 3},
		"mt940, statements":   {ids(t, mt940(page("F", "0", "F", "7")+page("F", "7", "F", "14"))), 1},
		"mt940, a page twice": {ids(t, mt940(page("F", "0", "M", "7")+page("F", "0", "M", "7"))), 1},
		"mt940, a gap":        {ids(t, mt940(page("F", "0", "M", "7")+page("M", "8", "F", "15"))), 1},
		"camt, pages": {ids(t, camt(camtOf(stmt("A", "OPBD", "0", "ITBD", "7"), stmt("A", "ITBD", "7", "ITBD", "14"),
			stmt("A", "ITBD", "14", "CLBD", "21")))), 3},
		"camt, statements":   {ids(t, camt(camtOf(stmt("A", "OPBD", "0", "CLBD", "7"), stmt("A", "OPBD", "7", "CLBD", "14")))), 1},
		"camt, a page twice": {ids(t, camt(camtOf(stmt("A", "OPBD", "0", "ITBD", "7"), stmt("A", "OPBD", "0", "ITBD", "7")))), 1},
		"camt, two accounts": {ids(t, camt(camtOf(stmt("A", "OPBD", "0", "ITBD", "7"), stmt("B", "ITBD", "7", "CLBD", "14")))), 2},
	} {
		different := map[string]bool{}
		for _, id := range c.ids {
			different[id] = true
		}
		assert.Len(t, different, c.want, name)
	}
}
