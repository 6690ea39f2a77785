package export

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

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

// formulaMarks begin what a spreadsheet takes for a formula; the full-width ones do so in some
// languages.
const formulaMarks = "=+-@＝＋－＠"

// guarded puts an apostrophe before what a spreadsheet would take for a formula: a text that begins
// with = + - @, their full-width forms, a tab or a line break, and such a mark inside the text
// where another spreadsheet begins a cell. A program whose separator is a semicolon or a tab splits
// the text there, and one that does not know the quotes of its line splits it at a line break.
// guarded is for texts, never for amounts.
func guarded(text string) string {
	first, _ := utf8.DecodeRuneInString(text)
	var b strings.Builder
	if text != "" && strings.ContainsRune(formulaMarks+"\t\r\n", first) {
		b.WriteByte('\'')
	}
	for {
		// Separators are single bytes, and no part of another character.
		i := strings.IndexAny(text, ";\t\r\n")
		b.WriteString(text[:i+1])
		text = text[i+1:]
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		if beginsFormula(text) {
			b.WriteByte('\'')
		}
	}
}

// beginsFormula reports whether a cell with this text is a formula. Quotes before it are the cell's
// own.
func beginsFormula(cell string) bool {
	cell = strings.TrimLeft(cell, `"`)
	first, _ := utf8.DecodeRuneInString(cell)
	return cell != "" && strings.ContainsRune(formulaMarks, first)
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
