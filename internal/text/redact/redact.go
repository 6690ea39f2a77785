// Package redact takes secrets out of texts that are logged or shown. It knows the values that were
// read as secrets, and the forms in which texts of other programs carry some.
package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// leastSecret is how many bytes a value has at least to be looked for: a shorter one would be found
// in ordinary words.
const leastSecret = 6

// mostKnown bounds how many values are looked for.
const mostKnown = 1000

var (
	learning sync.Mutex
	// known are the values, the longest first.
	known atomic.Pointer[[]string]
)

// Know has Text take a value out from now on. The code that reads a secret calls it; the same value
// again changes nothing.
func Know(secret string) {
	if secret = strings.TrimSpace(secret); len(secret) < leastSecret {
		return
	}
	learning.Lock()
	defer learning.Unlock()
	var values []string
	if all := known.Load(); all != nil {
		values = *all
	}
	if slices.Contains(values, secret) || len(values) >= mostKnown {
		return
	}
	values = append(slices.Clone(values), secret)
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	known.Store(&values)
}

// forms are how texts carry secrets: the password in an address, what follows the name of a secret,
// a bearer token, a token whose beginning says that it is one.
var forms = []struct {
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(://[^/\s:@"']*:)[^/\s"']+@`), "${1}" + Mask + "@"},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9+/=._~-]{6,}`), "${1} " + Mask},
	{regexp.MustCompile(`(?i)((?:password|passwd|secret|api[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token|authorization|signature|token)["']?\s*[=:]\s*["']?)[^\s"'&;,)}\[]{3,}`), "${1}" + Mask},
	{regexp.MustCompile(`\b(dbk_|whsec_|sk_live_|sk_test_|xox[abpr]-|gh[pousr]_)[A-Za-z0-9+/=_-]{8,}`), "${1}" + Mask},
}

// mayHave says cheaply that a text has none of the forms.
var mayHave = regexp.MustCompile(`(?i)://|bearer|basic|passw|secret|key|token|authorization|signature|dbk_|whsec_|sk_|xox|gh[pousr]_`)

// Text is a text without the secrets that are found in it.
func Text(s string) string {
	if s == "" {
		return s
	}
	if values := known.Load(); values != nil {
		for _, v := range *values {
			if strings.Contains(s, v) {
				s = strings.ReplaceAll(s, v, Mask)
			}
		}
	}
	if !mayHave.MatchString(s) {
		return s
	}
	for _, f := range forms {
		s = f.form.ReplaceAllString(s, f.with)
	}
	return s
}
