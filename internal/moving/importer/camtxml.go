package importer

import (
	"cmp"
	"strings"
)

// The parts of camt.053 (ISO 20022, Bank To Customer Statement) that a booking needs. Versions 2 to 7
// and from 8 on differ in a few places, such as the party's name, which are read in both forms.

var camtSpaces = map[string]string{
	"urn:iso:std:iso:20022:tech:xsd:camt.052.": "camt.052",
	"urn:iso:std:iso:20022:tech:xsd:camt.053.": "camt",
	"urn:iso:std:iso:20022:tech:xsd:camt.054.": "camt.054",
}

type camtAmount struct {
	Text     string `xml:",chardata"`
	Currency string `xml:"Ccy,attr"`
}

type camtDate struct {
	Day  string `xml:"camt Dt"`
	Time string `xml:"camt DtTm"`
}

// day is the day that the date states, whatever the time and the time zone beside it.
func (d camtDate) day() string {
	text := cmp.Or(trimmed(d.Day), trimmed(d.Time))
	return text[:min(len(text), len(isoLayout))]
}

type camtAccount struct {
	IBAN  string `xml:"camt Id>IBAN"`
	Other string `xml:"camt Id>Othr>Id"`
}

func (a camtAccount) id() string { return cmp.Or(withoutSpaces(a.IBAN), trimmed(a.Other)) }

type camtBalance struct {
	Code   string     `xml:"camt Tp>CdOrPrtry>Cd"`
	Amount camtAmount `xml:"camt Amt"`
	Side   string     `xml:"camt CdtDbtInd"`
}

type camtCharge struct {
	Amount camtAmount `xml:"camt Amt"`
	Side   string     `xml:"camt CdtDbtInd"`
}

type camtCharges struct {
	camtCharge              // of version 2
	Records    []camtCharge `xml:"camt Rcrd"`
}

// camtAmounts are what was ordered and what that came to.
type camtAmounts struct {
	Instructed camtAmount `xml:"camt InstdAmt>Amt"`
	Moved      camtAmount `xml:"camt TxAmt>Amt"`
}

type camtCode struct {
	Domain      string `xml:"camt Domn>Cd"`
	Family      string `xml:"camt Domn>Fmly>Cd"`
	SubFamily   string `xml:"camt Domn>Fmly>SubFmlyCd"`
	Proprietary string `xml:"camt Prtry>Cd"`
}

func (c camtCode) text() string {
	if domain := trimmed(c.Domain); domain != "" {
		return domain + "/" + trimmed(c.Family) + "/" + trimmed(c.SubFamily)
	}
	return trimmed(c.Proprietary)
}

type camtParty struct {
	Name  string `xml:"camt Nm"`
	Party string `xml:"camt Pty>Nm"` // from version 8 on
}

func (p camtParty) name() string { return cmp.Or(stated(p.Name), stated(p.Party)) }

type camtEntry struct {
	Amount    camtAmount `xml:"camt Amt"`
	Side      string     `xml:"camt CdtDbtInd"`
	Reversal  string     `xml:"camt RvslInd"`
	Status    camtStatus `xml:"camt Sts"`
	Booked    camtDate   `xml:"camt BookgDt"`
	Valued    camtDate   `xml:"camt ValDt"`
	Reference string     `xml:"camt AcctSvcrRef"`
	Code      camtCode   `xml:"camt BkTxCd"`
	camtMoney
	Transactions []camtTransaction `xml:"camt NtryDtls>TxDtls"`
	Text         string            `xml:"camt AddtlNtryInf"`
}

type camtStatus struct {
	Text string `xml:",chardata"`
	// From version 8 on.
	Code        string `xml:"camt Cd"`
	Proprietary string `xml:"camt Prtry"`
}

// text is the status; empty: none is stated.
func (s camtStatus) text() string {
	return cmp.Or(trimmed(s.Code), trimmed(s.Proprietary), trimmed(s.Text))
}

// camtMoney is what an entry and its transactions may state beside their amounts.
type camtMoney struct {
	Amounts camtAmounts   `xml:"camt AmtDtls"`
	Charges []camtCharges `xml:"camt Chrgs"`
}

type camtTransaction struct {
	Refs struct {
		Bank        string `xml:"camt AcctSvcrRef"`
		Instruction string `xml:"camt InstrId"`
		EndToEnd    string `xml:"camt EndToEndId"`
		Transaction string `xml:"camt TxId"`
		Mandate     string `xml:"camt MndtId"`
	} `xml:"camt Refs"`
	Amount camtAmount `xml:"camt Amt"`
	Side   string     `xml:"camt CdtDbtInd"`
	camtMoney
	Code    camtCode `xml:"camt BkTxCd"`
	Parties struct {
		Debtor           camtParty   `xml:"camt Dbtr"`
		DebtorAccount    camtAccount `xml:"camt DbtrAcct"`
		UltimateDebtor   camtParty   `xml:"camt UltmtDbtr"`
		Creditor         camtParty   `xml:"camt Cdtr"`
		CreditorAccount  camtAccount `xml:"camt CdtrAcct"`
		UltimateCreditor camtParty   `xml:"camt UltmtCdtr"`
	} `xml:"camt RltdPties"`
	Remittance struct {
		Texts      []string `xml:"camt Ustrd"`
		Structured []struct {
			Reference string   `xml:"camt CdtrRefInf>Ref"`
			Documents []string `xml:"camt RfrdDocInf>Nb"`
			Texts     []string `xml:"camt AddtlRmtInf"`
		} `xml:"camt Strd"`
	} `xml:"camt RmtInf"`
	Return *struct{} `xml:"camt RtrInf"`
	Text   string    `xml:"camt AddtlTxInf"`
}

func camtTrue(indicator string) bool {
	indicator = trimmed(indicator)
	return indicator == "true" || indicator == "1"
}

func withoutSpaces(text string) string { return strings.Join(strings.Fields(text), "") }

// camtInstructed is what was ordered in another currency.
func camtInstructed(a camtAmount, currency string) string {
	if trimmed(a.Currency) == currency || trimmed(a.Text) == "" {
		return ""
	}
	return trimmed(a.Text) + " " + trimmed(a.Currency)
}
