package models

import (
	"strconv"
	"strings"
)

// The currencies of ISO 4217, list one (https://www.six-group.com/en/products-services/financial-information/data-standards.html),
// by the number of decimal digits of their minor unit. Codes for metals, funds and testing have none and are left out.
const (
	digits0 = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
	digits2 = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE " +
		"CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG " +
		"HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK " +
		"MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE " +
		"SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR " +
		"ZMW ZWG"
	digits3 = "BHD IQD JOD KWD LYD OMR TND"
	digits4 = "CLF UYW"
)

var minorDigits = func() map[string]int {
	m := map[string]int{}
	for digits, codes := range map[int]string{0: digits0, 2: digits2, 3: digits3, 4: digits4} {
		for code := range strings.FieldsSeq(codes) {
			m[code] = digits
		}
	}
	return m
}()

// MinorDigits returns the number of decimal digits of a currency's minor unit: 2 for EUR, 0 for JPY, 3 for KWD.
// ok is false if ISO 4217 does not list the code.
func MinorDigits(currency string) (digits int, ok bool) {
	digits, ok = minorDigits[currency]
	return digits, ok
}

// FormatMinor writes an amount of minor units exactly, with the decimals of its currency and the currency's code behind:
// 10 of EUR is "0.10 EUR". A currency that ISO 4217 does not list has no decimals.
func FormatMinor(amount int64, currency string) string {
	digits := minorDigits[currency]
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
