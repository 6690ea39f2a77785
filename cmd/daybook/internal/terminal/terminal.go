// Package terminal keeps foreign texts from doing more to a terminal than being read.
package terminal

import "strings"

// OneLine keeps a text on its line, and control characters of foreign texts off the terminal.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0):
			return -1
		}
		return r
	}, s)
}
