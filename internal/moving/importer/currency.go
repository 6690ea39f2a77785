package importer

import (
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// MinorDigits returns the number of decimal digits of a currency's minor unit; see
// models.MinorDigits.
func MinorDigits(currency string) (digits int, ok bool) { return models.MinorDigits(currency) }

// currencySigns are the signs that exports write beside amounts, and the currencies that each may
// mean.
var currencySigns = map[string]string{
	"€": "EUR", "£": "GBP EGP FKP GIP SHP SYP LBP SSP SDG", "¥": "JPY CNY", "円": "JPY", "元": "CNY",
	"$": "USD AUD BBD BMD BND BSD BZD CAD FJD GYD HKD JMD KYD LRD NAD NZD SBD SGD SRD TTD TWD XCD " +
		"ARS CLP COP CUP DOP MXN UYU MOP TOP CVE NIO",
	"US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD NIO", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD",
	"NT$": "TWD",
	"R$":  "BRL", "MX$": "MXN", "Fr.": "CHF", "Fr": "CHF", "SFr.": "CHF", "kr": "SEK NOK DKK ISK",
	"kr.": "SEK NOK DKK ISK",
	"zł":  "PLN", "Kč": "CZK", "Ft": "HUF", "lei": "RON MDL", "лв": "BGN", "лв.": "BGN", "₽": "RUB", "₴": "UAH",
	"₺": "TRY",
	"₹": "INR", "Rs": "INR PKR LKR NPR MUR", "Rs.": "INR PKR LKR NPR MUR", "₨": "INR PKR LKR NPR MUR SCR", "৳": "BDT",
	"₪": "ILS", "₩": "KRW KPW", "₫": "VND", "฿": "THB", "₱": "PHP", "Rp": "IDR", "RM": "MYR", "R": "ZAR", "₦": "NGN",
	"₵":   "GHS",
	"KSh": "KES", "₡": "CRC SVC", "₲": "PYG", "Q": "GTQ", "S/": "PEN", "S/.": "PEN", "₸": "KZT", "₼": "AZN", "₾": "GEL",
	"֏": "AMD",
	"₭": "LAK", "₮": "MNT", "៛": "KHR",
}

// isMark reports whether a text is the code or a sign of a currency.
func isMark(text string) bool {
	if _, ok := currencySigns[text]; ok {
		return true
	}
	_, ok := MinorDigits(strings.ToUpper(text))
	return ok
}

// markOf reports whether a code or sign may mean the currency.
func markOf(mark, currency string) bool {
	return strings.EqualFold(mark, currency) || slices.Contains(strings.Fields(currencySigns[mark]), currency)
}
