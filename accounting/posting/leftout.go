package posting

import (
	"fmt"
	"slices"

	"github.com/daybook-dev/daybook/models"
)

// amountSet is a set of the fields of amounts, as bits: bit i stands for amountFields[i].
type amountSet uint16

const (
	netAmount amountSet = 1 << iota
	costAmount
	baseAmount
	taxAmount
	totalAmount
	prepaidAmount
	payableAmount
	roundingAmount
	amountAmount
	feeAmount
	settledAmount
)

// amountFields are the names that models.Content.Amounts has, in its order.
var amountFields = []string{
	"content.lines.net", "content.lines.cost", "content.taxes.base", "content.taxes.amount", "content.total",
	"content.prepaid",
	"content.payable", "content.rounding", "content.amount", "content.fee", "content.settled.amount",
}

// names are the fields of the set.
func (s amountSet) names() []string {
	var names []string
	for i, name := range amountFields {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// amountsOf are the amounts that a field is. A list as a whole is all amounts in it.
func amountsOf(field string) amountSet {
	switch field {
	case "content.lines":
		return netAmount | costAmount
	case "content.taxes":
		return baseAmount | taxAmount
	}
	if i := slices.Index(amountFields, field); i >= 0 {
		return 1 << i
	}
	return 0
}

// readBy are the amounts that the rule's lines are taken from.
func (r *rule) readBy() (s amountSet) {
	for _, field := range r.amounts() {
		s |= amountsOf(field)
	}
	return s
}

// statedBy are the fields that the document states, and not as zero.
func statedBy(doc *models.Document) amountSet {
	c := &doc.Content
	var s amountSet
	add := func(amount int64, field amountSet) {
		if amount != 0 {
			s |= field
		}
	}
	for i := range c.Lines {
		add(c.Lines[i].Net, netAmount)
		add(c.Lines[i].Cost, costAmount)
	}
	for i := range c.Taxes {
		add(c.Taxes[i].Base, baseAmount)
		add(c.Taxes[i].Amount, taxAmount)
	}
	add(c.Total, totalAmount)
	add(c.Prepaid, prepaidAmount)
	add(c.Payable, payableAmount)
	add(c.Rounding, roundingAmount)
	add(c.Amount, amountAmount)
	add(c.Fee, feeAmount)
	if c.Settled != nil {
		add(c.Settled.Amount, settledAmount)
	}
	return s
}

// quiet is a line of the document of which a line of the rule made no entry, although it states an
// amount.
type quiet struct {
	line     *line
	position int
}

// notePassed notes that a line of the rule came to zero for the element in scope.
func (e *evaluation) notePassed(l *line, position int) {
	element, ok := e.scope.element.(*models.Line)
	if !ok {
		return
	}
	if states := e.statedByLine(element); states != 0 && l.elementAmounts() != 0 && states&l.elementAmounts() == 0 {
		e.quiet = append(e.quiet, quiet{l, position})
	}
}

// elementAmounts are the amounts of the element that the line's amount is taken from.
func (l *line) elementAmounts() (s amountSet) {
	for _, read := range l.amount.reads {
		if read.variable != documentVariable {
			s |= amountsOf(l.fieldOf(read))
		}
	}
	return s
}

// statedByLine are the amounts of a line. What the goods cost is none of what an invoice, or the
// money for it, is about.
func (e *evaluation) statedByLine(l *models.Line) (s amountSet) {
	if l.Net != 0 {
		s |= netAmount
	}
	if l.Cost != 0 && !ofPrices(e.scope.doc.Type) {
		s |= costAmount
	}
	return s
}

// ofPrices reports whether documents of the type are about prices, not about costs.
func ofPrices(t models.DocumentType) bool {
	switch t {
	case models.DocumentInvoice, models.DocumentCreditNote, models.DocumentPayment, models.DocumentRefund,
		models.DocumentPayout:
		return true
	case models.DocumentDelivery, models.DocumentJournal:
	}
	return false
}

// leftOut refuses a document of which a part would not be posted, because no line of the rule reads
// the fields that state it.
func (e *evaluation) leftOut() *Error {
	for _, q := range e.quiet {
		if !e.posted(q.position) && !slices.Contains(e.rule.amounts(), "content.lines") {
			states := e.statedByLine(&e.scope.doc.Content.Lines[q.position-1])
			return &Error{
				Code: models.CodeAmountNotRead, Place: q.line.amount.place, Line: q.line.id,
				Message: fmt.Sprintf("line %d of the document states %s, and the rule reads %s, which it does not state: it "+
					"would not be posted; "+
					"correct the document, or leave such lines out by an if", q.position, listed(states.names()),
					listed(q.line.elementAmounts().names())),
			}
		}
	}
	if missing := e.rule.leavesOut(e.scope.doc); missing != 0 {
		return &Error{
			Code: models.CodeAmountNotRead, Place: e.rule.place,
			Message: fmt.Sprintf("the document states %s, and the rule reads %s: the former would not be posted; correct "+
				"the document or the rule",
				listed(missing.names()), listed(e.rule.amounts())),
		}
	}
	return nil
}

// posted reports whether an entry was made of a line of the document.
func (e *evaluation) posted(position int) bool {
	return slices.ContainsFunc(e.impact.Entries, func(x Entry) bool {
		return x.DocumentLine == position &&
			slices.ContainsFunc(e.rule.lines, func(l *line) bool { return l.id == x.RuleLineID && l.each == documentLines })
	})
}

// leavesOut are the amounts that the document states and that the rule does not post. A document
// states one sum as a whole and in parts: where the rule reads one of these fields, it stands for
// the others. A fee is beside that sum, what is payable and what is prepaid are parts of it. A rule
// that reads no amount has amounts of its own.
func (r *rule) leavesOut(doc *models.Document) (missing amountSet) {
	states, reads := statedBy(doc), r.reads
	if reads == 0 {
		return 0
	}
	if doc.Content.Settled == nil && reads&settledAmount != 0 {
		reads |= amountAmount // what arrived is then what was sent
	}
	sum := ^feeAmount
	if ofPrices(doc.Type) {
		sum &^= costAmount
	}
	read := reads & states & sum
	if read == 0 {
		missing = states & sum
	}
	const whole = netAmount | totalAmount | amountAmount | settledAmount
	if read&(whole|prepaidAmount) == 0 {
		missing |= states & prepaidAmount
	}
	if read&^prepaidAmount == 0 {
		missing |= states & payableAmount
	}
	return missing | states&feeAmount&^reads
}
