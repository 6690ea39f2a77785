package models

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The currencies of ISO 4217, list one
// (https://www.six-group.com/en/products-services/financial-information/data-standards.html), by
// the number of decimal digits of their minor unit. A code that leaves the list moves to withdrawn
// below and keeps its digits: amounts that are posted in it are printed as before.
const (
	digits0 = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
	digits2 = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE " +
		"CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG " +
		"HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK " +
		"MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE " +
		"SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR " +
		"ZMW ZWG"
	digits3 = "BHD IQD JOD KWD LYD OMR TND"
	digits4 = "CLF UYW"
)

// The codes that ISO 4217 has withdrawn, by the month of list three, read from public copies of it
// (github.com/datasets/currency-codes, github.com/ferdypruis/iso4217). List three states no digits:
// they are those of java.util.Currency in JDK 25, and two for ZWN.
const (
	withdrawn0 = "ADP:2003-07 BEF:2002-03 BYB:2001-01 BYR:2017-01 ESP:2002-03 GRD:2002-03 ITL:2002-03 LUF:2002-03 " +
		"MGF:2004-12 " +
		"PTE:2002-03 ROL:2005-06 TPE:2002-11 TRL:2005-12"
	withdrawn2 = "AFA:2003-01 ANG:2025-07 ATS:2002-03 AYM:2005-10 AZM:2005-12 BGL:2003-11 BGN:2026-01 CSD:2006-10 " +
		"CUC:2021-06 " +
		"CYP:2008-01 DEM:2002-03 EEK:2011-01 FIM:2002-03 FRF:2002-03 GHC:2008-01 GWP:1997-05 HRK:2023-01 IEP:2002-03 " +
		"LTL:2014-12 " +
		"LVL:2014-01 MRO:2017-12 MTL:2008-01 MZM:2006-06 NLG:2002-03 RUR:2004-01 SDD:2007-07 SIT:2007-01 SKK:2009-01 " +
		"SLL:2023-12 " +
		"SRG:2003-12 STD:2017-12 TMM:2009-01 USS:2014-03 VEB:2008-01 VEF:2018-08 YUM:2003-07 ZMK:2012-12 ZWD:2008-08 " +
		"ZWL:2024-09 " +
		"ZWN:2006-09 ZWR:2009-06"
	// withdrawnNone are those of which no digits are on record: amounts in them have no known minor
	// unit.
	withdrawnNone = "AOK:1991-03 AON:2000-02 AOR:2000-02 ARA:1992-01 ARP:1985-07 BAD:1998-07 BEC:1990-03 BEL:1990-03 " +
		"BOP:1987-02 " +
		"BRB:1986-03 BRC:1989-02 BRE:1993-03 BRN:1990-03 BRR:1994-07 BUK:1990-02 CHC:2004-11 CSK:1993-03 DDM:1990-09 " +
		"ECS:2000-09 " +
		"ECV:2000-09 ESA:1981-12 ESB:1994-12 GEK:1995-10 GHP:2007-06 GNS:1986-02 GQE:1986-06 GWE:1981-12 HRD:1995-01 " +
		"ILP:1981-12 " +
		"LSM:1985-05 LTT:1993-07 LUC:1990-03 LUL:1990-03 LVR:1994-12 MLF:1984-11 MTP:1983-06 MXP:1993-01 MZE:1981-12 " +
		"NIC:1990-10 " +
		"PEI:1991-07 PES:1986-02 PLZ:1997-01 RHD:1981-12 SDP:1998-06 SUR:1990-12 TJR:2001-04 UAK:1996-09 UGS:1987-05 " +
		"UYN:1989-12 " +
		"UYP:1993-03 XEU:1999-01 XFO:2006-10 XFU:2013-11 XRE:1999-11 YDD:1991-09 YUD:1990-01 YUN:1995-11 ZAL:1995-03 " +
		"ZRN:1999-06 " +
		"ZRZ:1994-02"
)

// noMinorUnit are the codes of list one that have no minor unit, and what they stand for.
var noMinorUnit = map[string]string{
	"XAG": "silver", "XAU": "gold", "XPD": "palladium", "XPT": "platinum", "XDR": "the special drawing right",
	"XSU": "the sucre, a unit of account", "XUA": "the unit of account of the African Development Bank",
	"XBA": "a unit of bond markets", "XBB": "a unit of bond markets",
	"XBC": "a unit of bond markets", "XBD": "a unit of bond markets", "XTS": "tests only", "XXX": "no currency at all",
}

// WithdrawnGraceMonths is for how many months after a currency's withdrawal documents may still be
// issued in it: credit notes and corrections of older ones, and payments while notes of both
// currencies were taken.
const WithdrawnGraceMonths = 12

type currencyOf struct {
	digits    int       // -1: none are known
	withdrawn time.Time // the first day of the month; zero: it is in list one
}

var currencies = func() map[string]currencyOf {
	m := map[string]currencyOf{}
	for digits, codes := range map[int]string{0: digits0, 2: digits2, 3: digits3, 4: digits4} {
		for code := range strings.FieldsSeq(codes) {
			m[code] = currencyOf{digits: digits}
		}
	}
	for digits, codes := range map[int]string{0: withdrawn0, 2: withdrawn2, -1: withdrawnNone} {
		for entry := range strings.FieldsSeq(codes) {
			code, month, _ := strings.Cut(entry, ":")
			since, err := time.Parse("2006-01", month)
			if err != nil {
				panic(err) // the table is ours
			}
			m[code] = currencyOf{digits, since}
		}
	}
	return m
}()

// MinorDigits returns the number of decimal digits of a currency's minor unit: 2 for EUR, 0 for
// JPY, 3 for KWD. A currency that ISO 4217 has withdrawn keeps its digits: 2 for HRK. ok is false
// if ISO 4217 never listed the code, or no minor unit of it.
func MinorDigits(currency string) (digits int, ok bool) {
	c, ok := currencies[currency]
	if !ok || c.digits < 0 {
		return 0, false
	}
	return c.digits, true
}

// CheckCurrency says why amounts of a document cannot be in the currency; nil: they can. issued is
// the document's issue date: a currency that was withdrawn takes documents until
// [WithdrawnGraceMonths] later. The zero date asks for no document, but whether there may be
// amounts in the currency at all.
func CheckCurrency(currency string, issued Date) error {
	c, known := currencies[currency]
	switch what, special := noMinorUnit[currency]; {
	case special:
		return fmt.Errorf("%s stands for %s and has no minor unit in ISO 4217; amounts are whole minor units: state the "+
			"value in a currency", currency, what)
	case !known:
		return unknownCurrency(currency)
	case c.digits < 0:
		return fmt.Errorf("%s was withdrawn from ISO 4217 in %s, and no minor unit of it is on record; state the value "+
			"in another currency",
			currency, c.withdrawn.Format("2006-01"))
	case c.withdrawn.IsZero() || issued.IsZero():
		return nil
	}
	if end := c.withdrawn.AddDate(0, WithdrawnGraceMonths, 0); !issued.Time().Before(end) {
		return fmt.Errorf("%s was withdrawn from ISO 4217 in %s: it takes documents that are issued before %s, and this "+
			"one is of %s; "+
			"correct the currency or the date", currency, c.withdrawn.Format("2006-01"), end.Format(time.DateOnly), issued)
	}
	return nil
}

func unknownCurrency(code string) error {
	upper := strings.ToUpper(strings.TrimSpace(code))
	switch _, meant := currencies[upper]; {
	case code == "":
		return errors.New("there is none; want a code of ISO 4217, such as EUR")
	case meant:
		return fmt.Errorf("%.20q is no ISO 4217 code: write %s", code, upper)
	}
	return fmt.Errorf("%.20q is no ISO 4217 code", code)
}

// FormatMinor writes an amount of minor units exactly, with the decimals of its currency and the
// currency's code behind: 10 of EUR is "0.10 EUR". A code without a minor unit has no decimals; no
// document is posted in one.
func FormatMinor(amount int64, currency string) string {
	digits, _ := MinorDigits(currency)
	text := strconv.FormatInt(amount, 10)
	sign := ""
	if amount < 0 {
		sign, text = "-", text[1:]
	}
	if digits > 0 {
		if len(text) <= digits {
			text = strings.Repeat("0", digits-len(text)+1) + text
		}
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	return sign + text + " " + currency
}
