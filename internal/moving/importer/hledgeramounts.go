package importer

import (
	"regexp"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// journalComma is an amount in a directive that says that a comma is the decimal mark.
var journalComma = regexp.MustCompile(`(?:^|[^\d,])\d+(?:[. ]\d{3})*,(?:\d{0,2}|\d{4,})(?:[^\d.,]|$)|\d[. ]\d{3},\d`)

// style keeps a directive's example of an amount that has a decimal comma.
func (j *journalReader) style(example string) {
	example, _, _ = strings.Cut(example, ";")
	if example = strings.TrimSpace(example); journalComma.MatchString(example) {
		j.comma = example
	}
}

// styled ends the reading where a directive has shown a decimal comma, and no decimal-mark has said
// so: 1.000 EUR would be one euro here.
func (j *journalReader) styled() {
	if j.comma != "" && !j.marked {
		j.put(LineDocument{Line: j.line}, invalid("%.60q above has a decimal comma: say so by a line \"decimal-mark ,\" at the top",
			j.comma))
		j.ended = true
	}
}

// marks takes the directive decimal-mark.
func (j *journalReader) marks(mark string) {
	switch mark {
	case ".":
		j.numbers.decimal, j.numbers.thousands = ".", ","
	case ",":
		j.numbers.decimal, j.numbers.thousands = ",", "."
	default:
		j.put(LineDocument{Line: j.line}, invalid("decimal-mark %.10q: want . or ,", mark))
		return
	}
	j.marked = true
}

// amount reads an amount in minor units of its currency.
func (j *journalReader) amount(text string) (int64, string, error) {
	n, err := j.numbers.parseNumber(text)
	if err != nil {
		return 0, "", invalid("%.60q is not an amount such as %s EUR", text, j.numbers.example())
	}
	if err := models.CheckCurrency(n.mark, j.doc.IssueDate); err != nil {
		return 0, "", invalid("%.60q: an amount needs a currency such as EUR: %w", text, err)
	}
	if !j.marked && strings.Contains(text, ",") && !strings.Contains(text, ".") {
		return 0, "", invalid("%.60q: a comma may stand for thousands or for decimals; say which by a line \"decimal-mark .\" or "+
			"\"decimal-mark ,\" at the top", text)
	}
	e, err := n.digits.exact()
	if err != nil {
		return 0, "", err
	}
	digits, _ := MinorDigits(n.mark)
	if _, fraction, _ := strings.Cut(string(n.digits), "."); len(strings.TrimRight(fraction, "0")) > digits {
		return 0, "", invalid("%.60q has more decimals than %s has", text, n.mark)
	}
	amount, err := toInt64(e.minor(digits), text)
	return amount, n.mark, err
}
