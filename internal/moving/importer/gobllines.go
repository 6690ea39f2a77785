package importer

import (
	"math/big"

	"github.com/daybook-dev/daybook/models"
)

// goblLines returns lines, charges, discounts (negative) and outlays, each without tax. Together
// with the taxes and the stated rounding they make up the payable amount, if the document is right.
//
// Where prices include a tax, GOBL states the net amount only for the whole document. The exact net
// amounts are rounded so that they add up to it.
func goblLines(in *goblDocument, digits int) ([]models.Line, error) {
	included := ""
	if in.Tax != nil {
		included = in.Tax.PricesInclude
	}
	retained := map[string]bool{}
	if in.Totals.Taxes != nil {
		for _, c := range in.Totals.Taxes.Categories {
			retained[c.Code] = c.Retained
		}
	}
	var lines []models.Line
	var exact []*big.Rat
	add := func(line models.Line, amount decimal, sign int64, taxes []goblCombo) error {
		net, err := netOf(amount, taxes, included)
		if err != nil {
			return err
		}
		for _, t := range taxes {
			if retained[t.Category] {
				continue
			}
			if line.Rate, err = t.Percent.rate(); err != nil {
				return err
			}
			line.Category = t.Category
			break
		}
		lines = append(lines, line)
		exact = append(exact, scaled(net.Mul(net, big.NewRat(sign, 1)), digits))
		return nil
	}
	for _, l := range in.Lines {
		line := models.Line{Kind: "item", Code: l.Item.Ref, Description: l.Item.Name}
		if err := add(line, l.Total, 1, l.Taxes); err != nil {
			return nil, err
		}
	}
	for _, c := range in.Charges {
		if err := add(c.line("charge"), c.Amount, 1, c.Taxes); err != nil {
			return nil, err
		}
	}
	for _, d := range in.Discounts {
		if err := add(d.line("discount"), d.Amount, -1, d.Taxes); err != nil {
			return nil, err
		}
	}
	total, err := in.Totals.Total.minor(digits)
	if err != nil {
		return nil, err
	}
	nets, err := allocate(exact, total)
	if err != nil {
		return nil, err
	}
	for i, net := range nets {
		lines[i].Net = net
	}
	for _, o := range in.Outlays {
		line := o.line("outlay")
		if line.Net, err = o.Amount.minor(digits); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// line makes a line of the charge. Its kind follows GOBL's key where that names a purpose.
func (c goblCharge) line(kind string) models.Line {
	switch {
	case kind == "charge" && c.Key == "delivery":
		kind = "shipping"
	case kind == "charge" && c.Key == "outlay":
		kind = "outlay"
	}
	line := models.Line{Kind: kind, Code: c.Code, Description: c.Reason}
	if line.Code == "" {
		line.Code = c.Key
	}
	if line.Description == "" {
		line.Description = c.Description
	}
	return line
}

// netOf takes the included tax out of an amount, exactly.
func netOf(amount decimal, taxes []goblCombo, included string) (*big.Rat, error) {
	net, err := amount.rat()
	if err != nil || included == "" {
		return net, err
	}
	for _, t := range taxes {
		if t.Category != included {
			continue
		}
		rate, err := t.Percent.percent()
		if err != nil {
			return nil, err
		}
		if rate.Cmp(big.NewRat(-1, 1)) <= 0 {
			return nil, invalid("a tax of %s cannot be included in a price", t.Percent)
		}
		net = withoutTax(net, rate)
	}
	return net, nil
}

// goblTaxes returns one tax for each rate that the totals state, and one for each surcharge.
func goblTaxes(totals *goblTotals, digits int) ([]models.Tax, error) {
	if totals.Taxes == nil {
		return nil, nil
	}
	var taxes []models.Tax
	for _, c := range totals.Taxes.Categories {
		if c.Informative {
			continue
		}
		add := func(category string, base, percent, amount decimal) error {
			t := models.Tax{Category: category, Retained: c.Retained}
			var err error
			if t.Base, err = base.minor(digits); err != nil {
				return err
			}
			if t.Rate, err = percent.rate(); err != nil {
				return err
			}
			if t.Amount, err = amount.minor(digits); err != nil {
				return err
			}
			if c.Retained {
				t.Amount = -t.Amount
			}
			taxes = append(taxes, t)
			return nil
		}
		for _, r := range c.Rates {
			if err := add(c.Code, r.Base, r.Percent, r.Amount); err != nil {
				return nil, err
			}
			if r.Surcharge != nil {
				if err := add(c.Code+"-surcharge", r.Base, r.Surcharge.Percent, r.Surcharge.Amount); err != nil {
					return nil, err
				}
			}
		}
	}
	return taxes, nil
}
