package importer

import (
	"math/big"
	"strings"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// statedTaxes takes from a document's first row the taxes that the source states for all of it.
func (d *draft) statedTaxes(cells []string) error {
	for _, t := range d.mapping.taxes {
		if t.amount == noColumn || cells[t.amount] == "" {
			continue
		}
		amount, err := d.amount(cells, t.amount)
		if err != nil {
			return err
		}
		category, err := d.text(t.category, cells)
		if err != nil {
			return err
		}
		tax := models.Tax{Category: strings.Clone(category), Amount: amount}
		if rate, err := d.rate(cells, t.rate, ratesUnsaid, t.percent); err != nil {
			return err
		} else if rate != nil {
			tax.Rate = *rate
		}
		d.whole = append(d.whole, tax)
	}
	return nil
}

// takeTaxes takes the taxes of the whole document when all its lines are there. Whether the lines
// include them follows from the total that the document states; then they are taken out of the
// lines, each in proportion to its amount.
func (d *draft) takeTaxes() error {
	c := &d.doc.Content
	taxes := new(big.Int)
	for _, t := range d.whole {
		taxes.Add(taxes, big.NewInt(t.Amount))
	}
	if len(d.mapping.taxes) == 0 {
		return nil
	}
	total := big.NewInt(*d.total)
	onTop := new(big.Int).Add(d.sum, taxes)
	net := new(big.Int).Sub(total, taxes)
	switch {
	case onTop.Cmp(total) == 0:
		d.sum = onTop
	case d.sum.Cmp(total) == 0 && d.sum.Sign() != 0:
		exact := make([]*big.Rat, len(c.Lines))
		for i, l := range c.Lines {
			share := new(big.Rat).SetFrac(net, total)
			exact[i] = share.Mul(share, new(big.Rat).SetInt64(l.Net))
		}
		if !net.IsInt64() {
			return invalid("the sum of the lines is out of range")
		}
		nets, err := allocate(exact, net.Int64())
		if err != nil {
			return err
		}
		for i := range nets {
			c.Lines[i].Net = nets[i]
		}
	default:
		text := func(units *big.Int) string {
			return moneyText(new(big.Rat).SetFrac(units, tenTo(d.digits)), d.doc.Currency)
		}
		return invalid("%w", &posting.Error{Code: models.CodeTotalsDiffer, Message: "the total is stated as " + text(total) +
			", but the lines come to " + text(d.sum) + ", and with the taxes to " + text(onTop) + ": a difference of " +
			text(new(big.Int).Sub(total, d.sum)) + " or " + text(new(big.Int).Sub(total, onTop))})
	}
	d.rateLines(net)
	for _, t := range d.whole {
		if err := d.addTax(t); err != nil {
			return err
		}
	}
	return nil
}

// rateLines gives the lines the rate of the document's only tax, if that is what the rate makes of
// their net sum; each line may have been rounded on its own.
func (d *draft) rateLines(net *big.Int) {
	if len(d.whole) != 1 {
		return
	}
	t, lines := &d.whole[0], d.doc.Content.Lines
	computed := new(big.Rat).Mul(new(big.Rat).SetInt(net), big.NewRat(t.Rate.Fraction()))
	off := computed.Sub(computed, new(big.Rat).SetInt64(t.Amount))
	if off.Abs(off).Cmp(new(big.Rat).SetInt64(int64(len(lines)))) > 0 {
		return
	}
	t.Base = net.Int64()
	for i := range lines {
		lines[i].Rate, lines[i].Category = t.Rate, t.Category
	}
}
