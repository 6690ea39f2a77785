package importer

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// taxesAttribute is the attribute of a document of whose taxes some were computed, because the
// source states a rate alone; its value is totalsDerived.
const taxesAttribute = "taxes"

// rateUnit is how the files write rates.
type rateUnit string

const (
	// ratesUnsaid takes a rate for a percentage, and refuses what may as well be a fraction.
	ratesUnsaid   rateUnit = ""
	ratesPercent  rateUnit = "percent"
	ratesFraction rateUnit = "fraction"
)

// openTax is a tax that is computed when all rows of the document are there: that of the lines that
// state a rate alone.
type openTax struct {
	category string
	rate     models.Rate
	included bool  // in the amounts of the lines
	lines    []int // positions in the document's lines
}

type taxKey struct {
	category string
	rate     models.Rate
}

// rate reads the rate of a row; nil: it states none. percent finds it in the column's text, if that
// is more than the rate.
func (d *draft) rate(cells []string, column int, rates rateUnit, percent *regexp.Regexp) (*models.Rate, error) {
	if column == noColumn || cells[column] == "" {
		return nil, nil
	}
	name, cell := d.mapping.columns[column], cells[column]
	if percent == nil {
		return d.rateOf(name, cell, rates)
	}
	found := percent.FindStringSubmatch(cell)
	if found == nil {
		return nil, invalid("%s: %.60q has no rate that %s finds", name, cell, percent)
	}
	return d.rateOf(name, found[1], ratesPercent)
}

// rateOf reads a rate from the text of a column.
func (d *draft) rateOf(name, cell string, rates rateUnit) (*models.Rate, error) {
	text, sign := strings.CutSuffix(cell, "%")
	n, err := d.mapping.parseNumber(text)
	var exact *big.Rat
	if err == nil {
		exact, err = n.digits.rat()
	}
	one := big.NewRat(1, 1)
	switch {
	case err != nil || n.mark != "":
		return nil, invalid("%s: %.60q is not a rate such as 19 or 19%%", name, cell)
	case exact.Sign() < 0:
		return nil, invalid("%s: the rate %.60q is negative", name, cell)
	case sign || rates == ratesPercent:
		exact.Quo(exact, big.NewRat(100, 1))
	case rates == ratesFraction && exact.Cmp(one) > 0:
		return nil, invalid("%s: %.60q is not a fraction, and lines.tax.rates is fraction", name, cell)
	case rates == ratesFraction:
	case exact.Sign() > 0 && exact.Cmp(one) < 0:
		return nil, invalid("%s: %.60q may be a fraction or a percentage; set lines.tax.rates to fraction or to percent",
			name, cell)
	default:
		exact.Quo(exact, big.NewRat(100, 1))
	}
	r, err := rateOf(exact)
	return &r, err
}

// tax takes the tax of a row into the document and the line, whose net is what the row states. A
// tax that is included in that is taken out of it; one of which only the rate is stated is left for
// computeTaxes.
func (d *draft) tax(m *lineMapping, cells []string, line *models.Line) error {
	stated := m.taxAmount != noColumn && cells[m.taxAmount] != ""
	rate, err := d.rate(cells, m.taxRate, m.rates, m.taxPercent)
	if err != nil || !stated && rate == nil {
		return err
	}
	category, err := d.text(m.taxCategory, cells)
	if err != nil {
		return err
	}
	line.Category = strings.Clone(category)
	if rate != nil {
		line.Rate = *rate
	}
	if !stated {
		d.leaveOpen(line.Category, *rate, m.taxIncluded)
		return nil
	}
	amount, err := d.amount(cells, m.taxAmount)
	if err != nil {
		return err
	}
	if m.taxIncluded {
		if line.Net, err = minus(line.Net, amount); err != nil {
			return err
		}
	}
	d.sum.Add(d.sum, big.NewInt(amount))
	return d.addTax(models.Tax{Category: line.Category, Rate: line.Rate, Base: line.Net, Amount: amount})
}

// leaveOpen notes that the tax of the next line is to be computed.
func (d *draft) leaveOpen(category string, rate models.Rate, included bool) {
	line := len(d.doc.Content.Lines)
	for i := range d.open {
		if o := &d.open[i]; o.category == category && o.rate == rate && o.included == included {
			o.lines = append(o.lines, line)
			return
		}
	}
	d.open = append(d.open, openTax{category, rate, included, []int{line}})
}

// computeTaxes computes the taxes of which the source states the rates alone: one for each category
// and rate, from the sum of its lines. Where the prices include the tax, the net amounts of the
// lines and the tax add up to the prices.
func (d *draft) computeTaxes() error {
	lines := d.doc.Content.Lines
	for _, o := range d.open {
		tax := models.Tax{Category: o.category, Rate: o.rate}
		rate := big.NewRat(o.rate.Fraction())
		exact := make([]*big.Rat, len(o.lines))
		sum := new(big.Int)
		for i, l := range o.lines {
			sum.Add(sum, big.NewInt(lines[l].Net))
			exact[i] = withoutTax(new(big.Rat).SetInt64(lines[l].Net), rate)
		}
		amount := new(big.Rat).Mul(new(big.Rat).SetInt(sum), rate)
		if o.included {
			amount = withoutTax(amount, rate)
		}
		rounded := roundHalfUp(amount)
		d.sum.Add(d.sum, rounded)
		var err error
		if tax.Amount, err = toInt64(rounded, rounded.String()); err != nil {
			return err
		}
		if o.included {
			d.sum.Sub(d.sum, rounded)
			sum.Sub(sum, rounded)
		}
		if tax.Base, err = toInt64(sum, sum.String()); err != nil {
			return err
		}
		if o.included {
			nets, err := allocate(exact, tax.Base)
			if err != nil {
				return err
			}
			for i, l := range o.lines {
				lines[l].Net = nets[i]
			}
		}
		if err := d.addTax(tax); err != nil {
			return err
		}
		d.attribute(taxesAttribute, totalsDerived)
	}
	return nil
}

// addTax adds a tax to the document's of the same category and rate.
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

func minus(a, b int64) (int64, error) {
	difference := new(big.Int).Sub(big.NewInt(a), big.NewInt(b))
	return toInt64(difference, fmt.Sprint(difference))
}
