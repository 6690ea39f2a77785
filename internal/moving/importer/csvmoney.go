package importer

import (
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
		if c.Amount, err = d.signed(cells, m.amount); err != nil {
			return err
		}
	}
	if m.fee.column != noColumn && cells[m.fee.column] != "" {
		// What is kept is positive, whichever way the money goes.
		fee := *d
		fee.negate = false
		if c.Fee, err = fee.signed(cells, m.fee); err != nil {
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
	amount, err := other.signed(cells, m.settled)
	c.Settled = &models.Money{Amount: amount, Currency: strings.Clone(currency)}
	return err
}

func (d *draft) signed(cells []string, s signedColumn) (int64, error) {
	amount, err := d.amount(cells, s.column)
	if err == nil && s.negate {
		return minus(0, amount)
	}
	return amount, err
}
