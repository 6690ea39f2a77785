package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// signedColumn is a column with amounts; negate: the files write them with the other sign.
type signedColumn struct {
	column int
	negate bool
}

// amountTypes are the types whose money is content.amount.
var amountTypes = []models.DocumentType{models.DocumentPayment, models.DocumentRefund, models.DocumentPayout}

func hasAmount(t models.DocumentType) bool { return slices.Contains(amountTypes, t) }

// money takes from a row what moved: the amount, the fee, and what arrived in another currency.
func (d *draft) money(cells []string) error {
	m, c := d.mapping, &d.doc.Content
	var err error
	if m.amount.column != noColumn && (cells[m.amount.column] != "" || hasAmount(d.doc.Type)) {
		if c.Amount, err = d.documentAmount(cells, m.amount); err != nil {
			return err
		}
	}
	if m.fee.column != noColumn && cells[m.fee.column] != "" {
		// What is kept is positive, whichever way the money goes.
		fee := *d
		fee.negate = false
		if c.Fee, err = fee.documentAmount(cells, m.fee); err != nil {
			return err
		}
		d.stated = true
	}
	if m.settled.column == noColumn || cells[m.settled.column] == "" {
		return nil
	}
	currency, err := d.text(m.settledCurrency, cells)
	if err != nil {
		return err
	}
	digits, ok := MinorDigits(currency)
	if !ok {
		return invalid("settled.currency %.20q is not listed in ISO 4217", currency)
	}
	other := draft{mapping: m, digits: digits, negate: d.negate, doc: models.Document{Currency: currency}}
	amount, err := other.documentAmount(cells, m.settled)
	c.Settled = &models.Money{Amount: amount, Currency: strings.Clone(currency)}
	return err
}

// documentAmount is an amount of the whole document. One such as 1.234 is refused where the currency has
// fewer decimals and the mapping does not say what separates thousands: it may be a thousand.
func (d *draft) documentAmount(cells []string, s signedColumn) (int64, error) {
	if d.digits < 3 && d.mapping.thousands == "" {
		n, err := d.mapping.parseNumber(cells[s.column])
		if err == nil && thousandOrNot.MatchString(string(n.digits)) {
			return 0, invalid("%s: %.60q has three decimals, and %s has %d: does %q separate thousands? Set numbers.decimal "+
				"and numbers.thousands", d.mapping.columns[s.column], cells[s.column], d.doc.Currency, d.digits, d.mapping.decimal)
		}
	}
	return d.signed(cells, s)
}

// thousandOrNot is a number whose decimals may be a group of three digits.
var thousandOrNot = regexp.MustCompile(`^-?[1-9]\d{0,2}\.\d{3}$`)

func (d *draft) signed(cells []string, s signedColumn) (int64, error) {
	amount, err := d.amount(cells, s.column)
	if err == nil && s.negate {
		return minus(0, amount)
	}
	return amount, err
}
