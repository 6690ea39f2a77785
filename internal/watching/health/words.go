package health

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// plural counts something.
func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return atLeast(n) + " " + more
}

// atLeast writes a figure that ends at diagnosis.Most, with thousands apart.
func atLeast(n int64) string {
	text := phrase.Count(n)
	if n >= diagnosis.Most {
		return text + " or more"
	}
	return text
}

// lowerFirst lets a sentence go on behind a colon. A name that begins it stays as it is.
func lowerFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[size:]); !unicode.IsLower(next) && next != ' ' {
		return s
	}
	for _, name := range []string{"PostgreSQL", "Temporal"} {
		if strings.HasPrefix(s, name) {
			return s
		}
	}
	return string(unicode.ToLower(first)) + s[size:]
}

// sentence makes a text that ends a sentence out of an error: on one line, not too long.
func sentence(err error) string { return clip(err.Error(), 300) }

// clip puts a text on one line of at most n characters.
func clip(s string, n int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// whose says of a session what the role may see of it.
func whose(user, application, state string) string {
	var known []string
	for _, s := range []string{user, application, state} {
		if s != "" {
			known = append(known, clip(s, 60))
		}
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, ", ") + ")"
}

// shell quotes a word of a command for a shell, if it has to be.
func shell(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 &&
		!strings.HasPrefix(word, "-") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// upperFirst begins a sentence.
func upperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
