package posting

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/daybook-dev/daybook/models"
)

// signs finds an amount whose sign the document's type, or the rest of the document, speaks
// against. The convention of signs is in docs/import.md; types that are not Daybook's own have
// none.
func signs(doc *models.Document) *Error {
	switch doc.Type {
	case models.DocumentPayment, models.DocumentRefund, models.DocumentPayout:
		if err := unsettled(doc); err != nil {
			return err
		}
		return neverNegative(doc)
	case models.DocumentCreditNote:
		if err := neverNegative(doc); err != nil {
			return err
		}
		return oneSign(doc)
	case models.DocumentInvoice:
		return oneSign(doc)
	case models.DocumentDelivery, models.DocumentJournal:
	}
	return nil
}

// unsettled refuses a document that says what arrived and not what was sent.
func unsettled(doc *models.Document) *Error {
	c := &doc.Content
	if c.Settled == nil || c.Settled.Amount == 0 || c.Amount != 0 {
		return nil
	}
	return &Error{Code: models.CodeAmountMissing, Message: fmt.Sprintf(
		"the document states content.settled.amount and not content.amount, which is what it is about in %s; state it",
		doc.Currency)}
}

// neverNegative refuses negative amounts of a type whose name says already which way the money
// goes. Single lines and taxes may be negative, such as a discount; their sums may not.
func neverNegative(doc *models.Document) *Error {
	c := &doc.Content
	sums := []struct {
		field string
		wide
	}{
		{"content.amount", wideOf(c.Amount)},
		{"content.total", wideOf(c.Total)},
		{"content.payable", wideOf(c.Payable)},
		{"content.prepaid", wideOf(c.Prepaid)},
	}
	if c.Settled != nil {
		sums = append(sums, struct {
			field string
			wide
		}{"content.settled.amount", wideOf(c.Settled.Amount)})
	}
	for _, s := range sums {
		if s.sign() < 0 {
			return negative(doc, s.field, s.wide)
		}
	}
	if doc.Type != models.DocumentCreditNote && doc.Type != models.DocumentRefund {
		return nil
	}
	var net, cost, base, tax wide
	for i := range c.Lines {
		net, cost = net.plus(c.Lines[i].Net), cost.plus(c.Lines[i].Cost)
	}
	for i := range c.Taxes {
		if t := &c.Taxes[i]; !t.Retained {
			base, tax = base.plus(t.Base), tax.plus(t.Amount)
		}
	}
	switch {
	case net.sign() < 0:
		return negative(doc, "the sum of content.lines.net", net)
	case cost.sign() < 0:
		return negative(doc, "the sum of content.lines.cost", cost)
	case base.sign() < 0:
		return negative(doc, "the sum of content.taxes.base", base)
	case tax.sign() < 0:
		return negative(doc, "the sum of content.taxes.amount", tax)
	}
	return nil
}

func negative(doc *models.Document, field string, sum wide) *Error {
	remedy := "the direction says which way the money goes: state the amount without its sign, and turn the direction " +
		"if it went the other way"
	if doc.Type == models.DocumentCreditNote || doc.Type == models.DocumentRefund {
		remedy = "its type says already that money goes back: state what is given back as positive amounts (a CSV " +
			"mapping turns them by negate: true)"
	}
	return &Error{
		Code:    models.CodeAmountSign,
		Message: fmt.Sprintf("%s is %s in a document of type %s; %s", field, sum.text(doc.Currency), doc.Type, remedy),
	}
}

// oneSign refuses a document that owes one way and is made up of lines and taxes that go the other
// way, and retained taxes that are charged. An invoice may be negative as a whole.
func oneSign(doc *models.Document) *Error {
	c := &doc.Content
	stated := wideOf(c.Payable).plus(c.Prepaid)
	if stated.sign() == 0 {
		stated = wideOf(c.Total)
	}
	made := gross(c)
	if made.sign()*stated.sign() < 0 {
		return &Error{Code: models.CodeAmountSign, Message: fmt.Sprintf(
			"what is payable and prepaid is %s, and the lines and taxes come to %s: all amounts of a document have the "+
				"sign of the whole; correct the document",
			stated.text(doc.Currency), made.text(doc.Currency))}
	}
	whole := stated.sign()
	if whole == 0 {
		whole = made.sign()
	}
	var retained wide
	for i := range c.Taxes {
		if t := &c.Taxes[i]; t.Retained {
			retained = retained.plus(t.Amount)
		}
	}
	if retained.sign()*whole > 0 {
		return &Error{Code: models.CodeAmountSign, Message: fmt.Sprintf(
			"the retained taxes are %s: a tax that is retained lowers what is owed, so its amount has the other sign than "+
				"the whole; correct the document",
			retained.text(doc.Currency))}
	}
	return nil
}

// totals refuses the total of an invoice or credit note that is not what is payable and prepaid.
// The rounding that a document states may be part of its total or not.
func totals(doc *models.Document, limit int64) *Error {
	c := &doc.Content
	owed := wideOf(c.Payable).plus(c.Prepaid)
	if doc.Type != models.DocumentInvoice && doc.Type != models.DocumentCreditNote || c.Total == 0 || c.Payable == 0 &&
		c.Prepaid == 0 {
		return nil
	}
	difference := wideOf(c.Total).minus(owed)
	if difference.within(limit) || difference.plus(c.Rounding).within(limit) {
		return nil
	}
	allowed := "correct the document"
	if limit > 0 {
		allowed = fmt.Sprintf("the rounding limit is %s; correct the document", wideOf(limit).text(doc.Currency))
	}
	return &Error{
		Code: models.CodeTotalsDiffer,
		Message: fmt.Sprintf("content.total is %s, and content.payable and content.prepaid come to %s, which differs by "+
			"%s; %s",
			wideOf(c.Total).text(doc.Currency), owed.text(doc.Currency), difference.text(doc.Currency), allowed),
	}
}

// gross is what the lines, the taxes and the stated rounding come to.
func gross(c *models.Content) wide {
	sum := wideOf(c.Rounding)
	for i := range c.Lines {
		sum = sum.plus(c.Lines[i].Net)
	}
	for i := range c.Taxes {
		sum = sum.plus(c.Taxes[i].Amount)
	}
	return sum
}

// wide is a sum of amounts, which 64 bits need not hold.
type wide struct {
	high int64
	low  uint64
}

func wideOf(n int64) wide { return wide{n >> 63, uint64(n)} }

func (w wide) plus(n int64) wide {
	low, carry := bits.Add64(w.low, uint64(n), 0)
	return wide{w.high + n>>63 + int64(carry), low}
}

func (w wide) minus(other wide) wide {
	low, borrow := bits.Sub64(w.low, other.low, 0)
	return wide{w.high - other.high - int64(borrow), low}
}

func (w wide) sign() int {
	switch {
	case w.high < 0:
		return -1
	case w.high == 0 && w.low == 0:
		return 0
	}
	return 1
}

// within reports whether the sum is at most limit, whatever its sign.
func (w wide) within(limit int64) bool {
	if w.sign() < 0 {
		w = wide{}.minus(w)
	}
	return w.high == 0 && w.low <= uint64(limit)
}

// text writes the sum for people.
func (w wide) text(currency string) string {
	if n := int64(w.low); w == wideOf(n) {
		return models.FormatMinor(n, currency)
	}
	n := new(big.Int).Lsh(big.NewInt(w.high), 64)
	return n.Add(n, new(big.Int).SetUint64(w.low)).String() + " minor units of " + currency
}
