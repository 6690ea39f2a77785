package importer

import (
	"math/big"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// lineBytes is about what a line needs in memory without its texts.
const lineBytes = 150

// line takes a row's line and its tax.
func (d *draft) line(cells []string) error {
	m := d.mapping
	line := models.Line{Kind: defaultKind}
	if chosen, ok := matching(m.kinds, cells); ok {
		line.Kind = chosen.result
	}
	var err error
	if line.Code, err = d.text(m.code, cells); err != nil {
		return err
	}
	if line.Description, err = d.text(m.description, cells); err != nil {
		return err
	}
	// A cell is a part of its row, all of which would be kept with it.
	line.Code, line.Description = strings.Clone(line.Code), strings.Clone(line.Description)
	d.bytes += lineBytes + len(line.Code) + len(line.Description)
	if line.Net, err = d.net(cells); err != nil {
		return err
	}
	tax, err := d.tax(cells, line.Net)
	if err != nil {
		return err
	}
	if tax != nil {
		line.Category, line.Rate = tax.Category, tax.Rate
		if err := d.addTax(*tax); err != nil {
			return err
		}
		d.sum.Add(d.sum, big.NewInt(tax.Amount))
	}
	d.sum.Add(d.sum, big.NewInt(line.Net))
	if d.refused == 0 {
		d.doc.Content.Lines = append(d.doc.Content.Lines, line)
	}
	return nil
}

// net is the amount that the row states, or else quantity times price. Either is rounded half to even to the minor unit.
func (d *draft) net(cells []string) (int64, error) {
	m := d.mapping
	if m.net != noColumn && (cells[m.net] != "" || m.quantity == noColumn || m.price == noColumn) {
		return d.amount(cells, m.net)
	}
	quantity, err := d.number(cells, m.quantity)
	if err != nil {
		return 0, err
	}
	price, err := d.number(cells, m.price)
	if err != nil {
		return 0, err
	}
	return d.minor(quantity.Mul(quantity, price), cells[m.quantity]+" × "+cells[m.price])
}

// tax is what the row states; nil: it states none.
func (d *draft) tax(cells []string, base int64) (*models.Tax, error) {
	m := d.mapping
	if m.taxAmount == noColumn || cells[m.taxAmount] == "" {
		return nil, nil
	}
	category, err := d.text(m.taxCategory, cells)
	if err != nil {
		return nil, err
	}
	tax := &models.Tax{Category: category, Base: base}
	if tax.Amount, err = d.amount(cells, m.taxAmount); err != nil {
		return nil, err
	}
	if m.taxRate != noColumn && cells[m.taxRate] != "" {
		rate, err := d.mapping.plainDecimal(strings.TrimSpace(strings.TrimSuffix(cells[m.taxRate], "%")))
		if err != nil {
			return nil, invalid("%s: %w", m.columns[m.taxRate], err)
		}
		if tax.Rate, err = (rate + "%").rate(); err != nil {
			return nil, err
		}
	}
	return tax, nil
}

// addTax adds a line's tax to the document's of the same category and rate.
func (d *draft) addTax(tax models.Tax) error {
	taxes := &d.doc.Content.Taxes
	key := taxKey{tax.Category, tax.Rate}
	i, ok := d.taxes[key]
	if !ok {
		d.taxes[key] = len(*taxes)
		*taxes = append(*taxes, tax)
		return nil
	}
	t := &(*taxes)[i]
	var err error
	if t.Base, err = plus(t.Base, tax.Base); err == nil {
		t.Amount, err = plus(t.Amount, tax.Amount)
	}
	return err
}

func plus(a, b int64) (int64, error) {
	sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
	return toInt64(sum, sum.String())
}

// amount reads a cell in minor units, with the sign that the document's type gives it.
func (d *draft) amount(cells []string, column int) (int64, error) {
	n, err := d.number(cells, column)
	if err != nil {
		return 0, err
	}
	return d.minor(n, cells[column])
}

// number reads a cell.
func (d *draft) number(cells []string, column int) (*big.Rat, error) {
	name := d.mapping.columns[column]
	if cells[column] == "" {
		return nil, invalid("%s is empty", name)
	}
	text, err := d.mapping.plainDecimal(cells[column])
	if err == nil {
		var r *big.Rat
		if r, err = text.rat(); err == nil {
			return r, nil
		}
	}
	return nil, invalid("%s: %.60q is not a number such as %s", name, cells[column], d.mapping.example())
}

// minor rounds an amount to the currency's minor unit.
func (d *draft) minor(amount *big.Rat, text string) (int64, error) {
	units := roundHalfEven(scaled(amount, d.digits))
	if d.negate {
		units.Neg(units)
	}
	return toInt64(units, text)
}

// plainDecimal turns a number as the files write it into a decimal.
func (m *Mapping) plainDecimal(text string) (decimal, error) {
	sign, digits := "", text
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = "-", rest
	}
	whole, fraction, point := strings.Cut(digits, m.decimal)
	if m.thousands != "" {
		groups := strings.Split(m.spaces(whole), m.thousands)
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
	return decimal(sign + whole), nil
}

// spaces turns the spaces that do not break a line into plain ones where those separate thousands.
func (m *Mapping) spaces(text string) string {
	if m.thousands != " " {
		return text
	}
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(text)
}

// example shows how the files write a number.
func (m *Mapping) example() string {
	return "-1" + m.thousands + "234" + m.decimal + "50"
}
