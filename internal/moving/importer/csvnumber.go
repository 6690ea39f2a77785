package importer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// writtenNumber is a number as a cell has it: its digits with a plain sign, and the currency that
// stands beside them.
type writtenNumber struct {
	digits decimal
	// mark is a code such as EUR or a sign such as €; empty: the cell names no currency.
	mark string
}

// parseNumber reads a number as the files write it. A negative one is -12.50, 12.50-, (12.50) or
// has the minus of typesetters (U+2212); a currency may stand on either side.
func (m *Mapping) parseNumber(text string) (writtenNumber, error) {
	var n writtenNumber
	rest, signed, negative := text, false, false
	for {
		rest = strings.TrimSpace(rest)
		if inner, ok := inBrackets(rest); ok && !signed {
			rest, signed, negative = inner, true, true
		} else if inner, minus, ok := cutSign(rest); ok && !signed {
			rest, signed, negative = inner, true, minus
		} else if inner, mark, ok := cutMark(rest); ok && n.mark == "" {
			rest, n.mark = inner, mark
		} else {
			break
		}
	}
	digits, err := m.plainDigits(rest, text)
	if err == nil && negative {
		digits = "-" + digits
	}
	n.digits = decimal(digits)
	return n, err
}

func inBrackets(text string) (string, bool) {
	inner, ok := strings.CutPrefix(text, "(")
	if !ok {
		return text, false
	}
	return strings.CutSuffix(inner, ")")
}

// cutSign takes a sign from either end.
func cutSign(text string) (rest string, minus, ok bool) {
	for _, s := range []struct {
		sign  string
		minus bool
	}{{"-", true}, {"\u2212", true}, {"+", false}} {
		if rest, ok := strings.CutPrefix(text, s.sign); ok {
			return rest, s.minus, true
		}
		if rest, ok := strings.CutSuffix(text, s.sign); ok {
			return rest, s.minus, true
		}
	}
	return text, false, false
}

// cutMark takes the code or sign of a currency from either end.
func cutMark(text string) (rest, mark string, ok bool) {
	ends := func(r rune) bool {
		return unicode.IsDigit(r) || unicode.IsSpace(r) || strings.ContainsRune("-+\u2212()", r)
	}
	if i := strings.IndexFunc(text, ends); i > 0 && isMark(text[:i]) {
		return text[i:], text[:i], true
	}
	if i := strings.LastIndexFunc(text, ends); i >= 0 {
		_, size := utf8.DecodeRuneInString(text[i:])
		if mark := text[i+size:]; isMark(mark) {
			return text[:i+size], mark, true
		}
	}
	return text, "", false
}

// plainDigits turns what is left of the text whole into digits with a decimal point.
func (m *Mapping) plainDigits(rest, text string) (string, error) {
	whole, fraction, point := strings.Cut(rest, m.decimal)
	if m.thousands != "" {
		groups := strings.Split(oneSeparator(whole), m.thousands)
		for i, g := range groups[1:] {
			if len(g) != 3 || len(groups[i]) > 3 || groups[i] == "" {
				return "", invalid("%.60q has %q where no group of three digits begins", text, m.thousands)
			}
		}
		whole = strings.Join(groups, "")
	}
	if whole == "" && fraction != "" {
		whole = "0"
	}
	if !allDigits(whole) || point && !allDigits(fraction) {
		return "", invalid("%.60q is not a number such as %s", text, m.example())
	}
	if point {
		whole += "." + fraction
	}
	return whole, nil
}

var separators = strings.NewReplacer("\u00a0", " ", "\u2007", " ", "\u2009", " ", "\u202f", " ", "\u2019", "'")

// oneSeparator writes the spaces that do not break a line, and the typesetters' apostrophe, as the
// plain ones.
func oneSeparator(text string) string { return separators.Replace(text) }

// example shows how the files write a number.
func (m *Mapping) example() string {
	return "-1" + m.thousands + "234" + m.decimal + "50"
}

// number reads a cell that is an amount of the currency, or a plain number where currency is empty.
func (d *draft) number(cells []string, column int, currency string) (exactNumber, error) {
	name := d.mapping.columns[column]
	if cells[column] == "" {
		return exactNumber{}, invalid("%s is empty", name)
	}
	n, err := d.mapping.parseNumber(cells[column])
	var e exactNumber
	if err == nil {
		e, err = n.digits.exact()
	}
	switch {
	case err != nil:
		return exactNumber{}, invalid("%s: %.60q is not a number such as %s; numbers.decimal and numbers.thousands say how the "+
			"files write numbers",
			name, cells[column], d.mapping.example())
	case n.mark != "" && currency == "":
		return exactNumber{}, invalid("%s: %.60q is an amount of money, and a plain number is wanted", name, cells[column])
	case n.mark != "" && !markOf(n.mark, currency):
		return exactNumber{}, invalid("%s: %.60q is in another currency than %s, which the mapping gives", name, cells[column],
			currency)
	}
	return e, nil
}

// amount reads a cell in minor units of the document's currency, with the sign that the document's
// type gives it.
func (d *draft) amount(cells []string, column int) (int64, error) {
	n, err := d.number(cells, column, d.doc.Currency)
	if err != nil {
		return 0, err
	}
	return d.minor(n, cells[column])
}

// minor rounds an amount, written as the product of texts, to the currency's minor unit.
func (d *draft) minor(amount exactNumber, written ...string) (int64, error) {
	units := amount.minor(d.digits)
	d.stated = true
	if d.negate {
		units.Neg(units)
	}
	if units.IsInt64() {
		return units.Int64(), nil
	}
	return toInt64(units, strings.Join(written, " × "))
}
