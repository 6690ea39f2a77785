// Package minor writes amounts of minor units (cents of EUR, whole yen of JPY) as decimal numbers.
package minor

import (
	"math/big"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// Decimal writes an amount of minor units exactly, with the decimals of its currency: 1234 EUR is
// 12.34. A currency that ISO 4217 does not list has no decimals.
func Decimal(amount *big.Int, currency string) string {
	digits, _ := models.MinorDigits(currency)
	text := new(big.Int).Abs(amount).String()
	if digits > 0 {
		if len(text) <= digits {
			text = strings.Repeat("0", digits-len(text)+1) + text
		}
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	if amount.Sign() < 0 {
		return "-" + text
	}
	return text
}

// Decimal64 is Decimal of an amount that 64 bits hold.
func Decimal64(amount int64, currency string) string { return Decimal(big.NewInt(amount), currency) }
