package minor

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// written are the ways to write an amount without its sign: with the groups that are its whole part
// and its decimals.
var written = []*regexp.Regexp{
	regexp.MustCompile(`^(\d+)(?:[.,](\d+))?$`),
	regexp.MustCompile(`^(\d{1,3}(?:,\d{3})+)\.(\d+)$`),
	regexp.MustCompile(`^(\d{1,3}(?:\.\d{3})+),(\d+)$`),
	regexp.MustCompile(`^(\d{1,3}(?:,\d{3}){2,}|\d{1,3}(?:\.\d{3}){2,})()$`),
}

var (
	blanks = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "'", "", "’", "", "−", "-")
	marks  = strings.NewReplacer(".", "", ",", "")
)

// Parse reads an amount as people write it, in minor units of its currency: 1234.5, -1,234.50,
// 1.234,50 or 1 234,50. A comma that three digits follow, and no other mark, may stand for thousands
// or for decimals, and is refused; so are more decimals than the currency has.
func Parse(text, currency string) (int64, error) {
	decimals, ok := models.MinorDigits(currency)
	if !ok {
		return 0, fmt.Errorf("%.10q is not a currency of ISO 4217", currency)
	}
	wrong := func(why string) (int64, error) {
		return 0, fmt.Errorf("%.40q is not an amount in %s such as %s%s", text, currency, Decimal64(123450, currency), why)
	}
	digits, negative := strings.CutPrefix(blanks.Replace(strings.TrimSpace(text)), "-")
	var whole, fraction string
	for _, way := range written {
		if found := way.FindStringSubmatch(digits); found != nil {
			whole, fraction = marks.Replace(found[1]), found[2]
			break
		}
	}
	switch {
	case whole == "":
		return wrong("")
	case len(fraction) == 3 && strings.Count(digits, ",") == 1 && !strings.Contains(digits, "."):
		return wrong(": its comma may stand for thousands or for decimals")
	case len(fraction) > decimals:
		return wrong(": it has more decimals")
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		return wrong(": it is out of range")
	}
	if negative {
		n = -n
	}
	return n, nil
}
