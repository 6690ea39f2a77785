// Package formula keeps spreadsheets from taking texts of users for formulas.
package formula

import (
	"strings"
	"unicode/utf8"
)

// marks begin what a spreadsheet takes for a formula; the full-width ones do so in some languages.
const marks = "=+-@＝＋－＠"

// Guard puts an apostrophe before what a spreadsheet would take for a formula: a text that begins
// with = + - @, their full-width forms, a tab or a line break, and such a mark inside the text
// where another spreadsheet begins a cell. A program whose separator is a semicolon or a tab splits
// the text there, and one that does not know the quotes of its line splits it at a line break.
// Guard is for texts, never for amounts.
func Guard(text string) string {
	first, _ := utf8.DecodeRuneInString(text)
	var b strings.Builder
	if text != "" && strings.ContainsRune(marks+"\t\r\n", first) {
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
		if begins(text) {
			b.WriteByte('\'')
		}
	}
}

// begins reports whether a cell with this text is a formula. Quotes before it are the cell's own.
func begins(cell string) bool {
	cell = strings.TrimLeft(cell, `"`)
	first, _ := utf8.DecodeRuneInString(cell)
	return cell != "" && strings.ContainsRune(marks, first)
}
