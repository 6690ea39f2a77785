package health

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

// Age writes a duration in its two largest units: "2 s", "3 min 10 s", "5 h 12 min", "4 d".
func Age(d time.Duration) string {
	d = max(d, 0)
	two := func(large, small time.Duration, l, s string) string {
		text := fmt.Sprintf("%d %s", d/large, l)
		if rest := d % large / small; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, s)
		}
		return text
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < 48*time.Hour:
		return two(time.Hour, time.Minute, "h", "min")
	default:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
}

// plural counts something.
func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return atLeast(n) + " " + more
}

// atLeast writes a figure that ends at diagnosis.Most, with thousands apart.
func atLeast(n int64) string {
	text := grouped(n)
	if n >= diagnosis.Most {
		return text + " or more"
	}
	return text
}

func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// enumerate writes "a", "a and b" or "a, b and c".
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// lowerFirst lets a sentence go on behind a colon. A name that begins it stays as it is.
func lowerFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[size:]); !unicode.IsLower(next) && next != ' ' {
		return s
	}
	for _, name := range []string{"PostgreSQL", "Temporal", "Organization "} {
		if strings.HasPrefix(s, name) && name != "Organization " {
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
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 && !strings.HasPrefix(word, "-") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// upperFirst begins a sentence.
func upperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
