package posting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// Check says whether a document can be posted as far as its amounts go, before it is stored: it
// states an amount that its rule reads, or zero on purpose; its signs are those of its type; its
// totals agree. The rule is the one of rules that matches it. Where none does, or rules is nil,
// what is read is the convention of its type, as docs/import.md has it.
//
// The error is an *Error with one of the codes AMOUNT_NOT_READ, AMOUNT_MISSING, AMOUNT_SIGN and
// TOTALS_DIFFER, or, of a document with a journal, what Journal returns. What else keeps the document from being posted is not looked at.
func Check(doc *models.Document, rules *RuleSet) error {
	if doc.Content.Journal != nil {
		_, err := Journal(doc, everyAccount{})
		return err
	}
	if rules == nil {
		return byConvention(doc)
	}
	e := &evaluation{scope: scope{doc: doc}, chart: everyAccount{}}
	failed, _ := errors.AsType[*Error](e.run(rules))
	switch {
	case failed == nil:
		return nil
	case e.rule == nil, failed.Code == models.CodeAmbiguousRule:
		return byConvention(doc)
	case slices.Contains(amountCodes, failed.Code):
		return failed
	}
	return e.named(totals(doc, e.rule.roundingLimit()))
}

// amountCodes are the codes that Check returns.
var amountCodes = []models.ErrorCode{
	models.CodeAmountNotRead, models.CodeAmountMissing, models.CodeAmountSign,
	models.CodeTotalsDiffer,
}

// everyAccount is a chart that lacks nothing.
type everyAccount struct{}

// HasAccount implements Chart.
func (everyAccount) HasAccount(string) bool { return true }

// Allows implements Chart.
func (everyAccount) Allows(string, string) bool { return true }

// roundingLimit is how many minor units the rule lets a document be off by.
func (r *rule) roundingLimit() int64 {
	if r.rounding == nil {
		return 0
	}
	return r.rounding.maxMinor
}

// named adds the rule to an error about the document.
func (e *evaluation) named(err *Error) error {
	if err == nil {
		return nil
	}
	err.Rule = e.rule.id
	return err
}

// nothingPosted says why no line of the rule made an entry: the document is about nothing, or it
// fails.
func (e *evaluation) nothingPosted() error {
	content := &e.scope.doc.Content
	if content.StatesZero() {
		e.impact.NoEntries = models.NoEntriesZero
		return nil
	}
	return e.named(unread(content, "the rule reads", e.rule.amounts(), e.applied, e.rule.place))
}

// unread is the error of a document of which nothing is posted: what it states is not what is read.
// reader is who reads the fields.
func unread(content *models.Content, reader string, reads []string, applied bool, place Place) *Error {
	var states []string
	for _, a := range content.Amounts() {
		states = append(states, a.Field)
	}
	stated, read := listed(states), listed(reads)
	fail := func(code models.ErrorCode, format string, args ...any) *Error {
		return &Error{Code: code, Place: place, Message: fmt.Sprintf(format, args...)}
	}
	const onPurpose = "or write a rule with posts: nothing if nothing is to be posted"
	switch {
	case len(states) == 0:
		return fail(models.CodeAmountMissing, "the document states no amount, and %s %s; state it, as 0 (or "+
			"content.zero: true) if the document is about no money",
			reader, cmp.Or(read, "none"))
	case !applied:
		return fail(models.CodeAmountNotRead,
			"the document states %s, and each line of the rule has an if that is false for it: nothing would be posted; "+
				"correct the document or the conditions, %s", stated, onPurpose)
	case slices.ContainsFunc(reads, func(field string) bool { return slices.Contains(states, field) }):
		return fail(models.CodeAmountNotRead, "the document states %s, and %s %s, which comes to zero: nothing would be "+
			"posted; correct the document or the rule, %s",
			stated, reader, read, onPurpose)
	case read == "":
		return fail(models.CodeAmountNotRead,
			"the document states %s, and %s none of its amounts: nothing would be posted; correct the rule, %s", stated,
			reader, onPurpose)
	}
	return fail(models.CodeAmountNotRead, "%s %s, which the document does not state; it states %s: nothing would be "+
		"posted; correct the document or the rule",
		reader, read, stated)
}

// listed writes names as a sentence has them.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// amounts names the fields that the rule's lines take their amounts from.
func (r *rule) amounts() []string {
	var fields []string
	for _, l := range r.lines {
		for _, read := range l.amount.reads {
			if field := l.fieldOf(read); !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	return fields
}

// fieldOf names a field that the line reads, as models.Content.Amounts does.
func (l *line) fieldOf(read reference) string {
	switch {
	case read.variable != documentVariable && l.each == documentLines:
		return "content.lines." + read.field.name
	case read.variable != documentVariable && l.each == documentTaxes:
		return "content.taxes." + read.field.name
	case read.field.name == "settled":
		return "content.settled.amount"
	}
	return "content." + read.field.name
}

// byConvention checks a document that no rule is known for.
func byConvention(doc *models.Document) error {
	if err := signs(doc); err != nil {
		return err
	}
	if err := totals(doc, 0); err != nil {
		return err
	}
	c := &doc.Content
	reads, read := conventional(doc)
	if read || c.StatesZero() {
		return nil
	}
	reader := fmt.Sprintf("a document of type %s is posted by", doc.Type)
	return unread(c, reader, reads, true, Place{})
}

// conventional names the fields that documents of a type are posted by, and reports whether the
// document states one of them.
func conventional(doc *models.Document) (fields []string, read bool) {
	c := &doc.Content
	switch doc.Type {
	case models.DocumentPayment, models.DocumentRefund, models.DocumentPayout:
		return []string{"content.amount"}, c.Amount != 0 || statedBy(doc) == feeAmount
	case models.DocumentDelivery:
		return []string{"content.lines.cost"}, statedBy(doc)&costAmount != 0 &&
			!slices.ContainsFunc(c.Lines, func(l models.Line) bool { return l.Cost == 0 && l.Net != 0 })
	case models.DocumentInvoice, models.DocumentCreditNote:
		// Nothing is payable where the lines come to nothing, such as work that a discount makes free.
		free := len(c.Lines)+len(c.Taxes) > 0 && gross(c).sign() == 0 && c.Total == 0
		return []string{"content.payable", "content.prepaid"}, c.Payable != 0 || c.Prepaid != 0 || free
	case models.DocumentJournal:
	}
	return nil, c.StatesAmount()
}
