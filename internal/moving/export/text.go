package export

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"

	"github.com/daybook-dev/daybook/models"
)

// oneLine puts a text on one line: each run of blanks, line breaks and control characters becomes
// one blank.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
	}), " ")
}

// cut shortens a text to at most that many bytes. A shortened one ends in an ellipsis.
func cut(s string, most int) string {
	const ellipsis = "…"
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}

// encode percent-encodes control characters, the percent sign, blanks other than the plain one, and
// the characters given.
func encode(s, special string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '%' || unicode.IsControl(r) || (unicode.IsSpace(r) && r != ' ') || strings.ContainsRune(special, r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// decimal writes minor units with the decimals of their currency, and the currency behind.
func decimal(amount *big.Int, currency string) string {
	if amount.IsInt64() {
		return models.FormatMinor(amount.Int64(), currency)
	}
	digits, _ := models.MinorDigits(currency)
	text := amount.String()
	if digits > 0 {
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	return text + " " + currency
}

// number is decimal without the currency.
func number(amount int64, currency string) string {
	text, _, _ := strings.Cut(models.FormatMinor(amount, currency), " ")
	return text
}
