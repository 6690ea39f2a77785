package handlers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine puts a text on one line: each run of blanks and control characters becomes one blank.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError
	}), " ")
}

// hasControl reports whether a text has characters that could end a header's line.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
	})
}

// isToken reports whether a text may name an HTTP header.
func isToken(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	return s != ""
}

// isVisible reports whether a text has only what a header's value may have everywhere: visible
// ASCII and blanks inside.
func isVisible(s string) bool {
	return strings.TrimSpace(s) == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
