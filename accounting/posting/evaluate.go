package posting

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// Evaluate returns the entries that the document causes. It reads the document and changes nothing.
//
// Exactly one rule must match, unless the document has a Journal. Every error is an *Error. Its code says what has to be changed: the
// rule set (NO_MATCHING_RULE, AMBIGUOUS_RULE), the chart (UNKNOWN_ACCOUNT) or the document
// (UNBALANCED, DOCUMENT_INVALID, and what Check finds). A nil chart has no account.
func (rs *RuleSet) Evaluate(doc *models.Document, chart Chart) (*Impact, error) {
	if doc == nil {
		return nil, &Error{Code: models.CodeDocumentInvalid, Message: "there is no document"}
	}
	if chart == nil {
		chart = Accounts(nil)
	}
	if doc.Content.Journal != nil {
		return Journal(doc, chart)
	}
	e := &evaluation{scope: scope{doc: doc}, chart: chart}
	if err := e.run(rs); err != nil {
		return nil, err
	}
	return e.impact, nil
}

// ComputesDates reports whether the posting date of some rule is computed, and not a date that its
// documents state.
func (rs *RuleSet) ComputesDates() bool {
	return slices.ContainsFunc(rs.rules, func(r *rule) bool { return r.date.plain == nil })
}

// ComputedDate returns the posting date of a document if its rule computes it. It is false where
// the date is one that the document states, where not exactly one rule matches, and where the date
// cannot be computed.
func (rs *RuleSet) ComputedDate(doc *models.Document) (models.Date, bool) {
	if doc.Content.Journal != nil {
		return models.Date{}, false
	}
	e := &evaluation{scope: scope{doc: doc}}
	if err := e.match(rs.rules); err != nil || e.rule.date.plain != nil {
		return models.Date{}, false
	}
	date, err := e.rule.date.date(&e.scope)
	return date, err == nil
}

// evaluation is the evaluation of one document by one rule set.
type evaluation struct {
	scope  scope
	chart  Chart
	rule   *rule
	impact *Impact
	sums   balance
	// applied reports whether a line of the rule was left out by none of its conditions.
	applied bool
	// quiet are lines of the document that a line of the rule passed over.
	quiet []quiet
	// dimensions are those of the whole document.
	dimensions models.Dimensions
}

// run finds the rule, evaluates its lines and checks the balance.
func (e *evaluation) run(rs *RuleSet) error {
	if err := e.match(rs.rules); err != nil {
		return err
	}
	r, doc := e.rule, e.scope.doc
	if err := checkDates(doc); err != nil {
		return e.fail(models.CodeDocumentInvalid, nil, r.place, "%v", err)
	}
	date, err := r.date.date(&e.scope)
	if err != nil {
		return e.fail(models.CodeDocumentInvalid, nil, r.date.place, "date: %v", err)
	}
	e.impact = &Impact{
		RuleID: r.id, DocumentDate: doc.IssueDate, PostingDate: date,
		Entries: make([]Entry, 0, e.capacity()),
	}
	if r.nothing {
		e.impact.NoEntries = models.NoEntriesRule
		return nil
	}
	if err := e.named(signs(doc)); err != nil {
		return err
	}
	if err := checkDimensions(doc); err != nil {
		return e.fail(models.CodeDocumentInvalid, nil, r.place, "%v", err)
	}
	e.dimensions = doc.Content.Dimensions.With(nil)
	for _, l := range r.lines {
		if err := e.evaluateLine(l); err != nil {
			return err
		}
	}
	if err := e.offsetDifferences(); err != nil {
		return err
	}
	if len(e.impact.Entries) == 0 {
		return e.nothingPosted()
	}
	if err := e.named(e.leftOut()); err != nil {
		return err
	}
	return e.named(totals(doc, r.roundingLimit()))
}

// checkDates refuses a document without a date, or with one that no document may have.
func checkDates(doc *models.Document) error {
	if doc.IssueDate.IsZero() {
		return errNoDate
	}
	if err := doc.IssueDate.Check(); err != nil {
		return fmt.Errorf("issue_date: %w", err)
	}
	if err := valueDate(doc).Check(); err != nil {
		return fmt.Errorf("value_date: %w", err)
	}
	return nil
}

// match finds the one rule whose condition holds.
func (e *evaluation) match(rules []*rule) error {
	for _, r := range rules {
		ok, err := r.when.bool(&e.scope)
		if err != nil {
			e.rule = r
			return e.fail(models.CodeDocumentInvalid, nil, r.when.place, "when: %v", err)
		}
		if !ok {
			continue
		}
		if e.rule != nil {
			return e.fail(models.CodeAmbiguousRule, nil, e.rule.place,
				"the rule %q at %v matches the document as well; narrow the condition of one of them", r.id, r.place)
		}
		e.rule = r
	}
	if e.rule == nil {
		doc := e.scope.doc
		return e.fail(models.CodeNoMatchingRule, nil, Place{},
			"no rule matches the document (type=%q, direction=%q, currency=%q, country=%q); add a rule for it or correct "+
				"the document",
			doc.Type, doc.Direction, doc.Currency, doc.Content.Country)
	}
	return nil
}

// capacity is the room to reserve for the entries that the rule makes.
func (e *evaluation) capacity() int {
	n := 1
	for _, l := range e.rule.lines {
		elements := 1
		switch l.each {
		case noList:
		case documentLines:
			elements = len(e.scope.doc.Content.Lines)
		case documentTaxes:
			elements = len(e.scope.doc.Content.Taxes)
		}
		if l.split != nil {
			elements *= len(l.split.shares)
		}
		n += elements
	}
	return min(n, 4096)
}

// evaluateLine makes the entries of one line of the rule.
func (e *evaluation) evaluateLine(l *line) error {
	content := &e.scope.doc.Content
	e.scope.name = l.as
	defer func() { e.scope.element = nil }()
	switch l.each {
	case documentLines:
		for i := range content.Lines {
			e.scope.element = &content.Lines[i]
			if err := e.evaluateElement(l, i+1); err != nil {
				return err
			}
		}
	case documentTaxes:
		for i := range content.Taxes {
			e.scope.element = &content.Taxes[i]
			if err := e.evaluateElement(l, i+1); err != nil {
				return err
			}
		}
	default:
		return e.evaluateElement(l, 0)
	}
	return nil
}

// evaluateElement makes the entries of one line for one element; position 0 is no element. The
// account is looked for only when there is something to post, so a zero needs no row in a map.
func (e *evaluation) evaluateElement(l *line, position int) error {
	if l.when != nil {
		ok, err := l.when.bool(&e.scope)
		if err != nil {
			return e.fail(models.CodeDocumentInvalid, l, l.when.place, "if%s: %v", l.at(position), err)
		}
		if !ok {
			return nil
		}
	}
	e.applied = true
	amount, err := l.amount.integer(&e.scope)
	if err != nil {
		return e.fail(models.CodeDocumentInvalid, l, l.amount.place, "amount%s: %v", l.at(position), err)
	}
	if amount == 0 {
		e.notePassed(l, position)
		return nil
	}
	if amount == math.MinInt64 {
		return e.fail(models.CodeDocumentInvalid, l, l.amount.place,
			"amount%s: %d cannot be turned to the other side; correct the document", l.at(position), amount)
	}
	currency, place := e.scope.doc.Currency, l.place
	if l.currency != nil {
		place = l.currency.place
		if currency, err = l.currency.text(&e.scope); err != nil {
			return e.fail(models.CodeDocumentInvalid, l, place, "currency%s: %v", l.at(position), err)
		}
	}
	if err := models.CheckCurrency(currency, e.scope.doc.IssueDate); err != nil {
		return e.fail(models.CodeDocumentInvalid, l, place, "currency%s: %v; correct the document", l.at(position), err)
	}
	account := l.account
	if l.accounts != nil {
		if account, err = e.lookup(l, position); err != nil {
			return err
		}
	}
	side := l.side
	if (amount < 0) != e.rule.negate {
		side = side.Opposite()
	}
	if amount < 0 {
		amount = -amount
	}
	entry := Entry{
		Account: account, Side: side, Amount: amount, Currency: currency, RuleLineID: l.id,
		DocumentLine: position,
	}
	if entry.Dimensions, err = e.dimensionsOf(l, position); err != nil {
		return err
	}
	if l.split == nil {
		return e.add(l, l.place, entry)
	}
	shares, err := e.sharesOf(l, position)
	if err != nil {
		return err
	}
	for i, part := range allocate(amount, shares) {
		if part == 0 {
			continue
		}
		entry.Account, entry.Amount = l.split.accounts[i], part
		if err := e.add(l, l.split.places[i], entry); err != nil {
			return err
		}
	}
	return nil
}

// add appends the entry to the impact and adds it to the sums. l is nil for the rounding and the
// exchange entry; place is where the rule set names its account.
func (e *evaluation) add(l *line, place Place, entry Entry) error {
	if !e.chart.HasAccount(entry.Account) {
		return e.fail(models.CodeUnknownAccount, l, place,
			"the chart of accounts has no account %q; add it or correct the rule", entry.Account)
	}
	if !e.chart.Allows(entry.Account, entry.Currency) {
		return e.fail(models.CodeUnknownAccount, l, place,
			"the account %q does not take %s; allow it the currency or correct the rule", entry.Account, entry.Currency)
	}
	if !e.sums.add(entry) {
		return e.fail(models.CodeDocumentInvalid, l, place,
			"the entries in %s add up to more than 64 bits hold; correct the document", entry.Currency)
	}
	e.impact.Entries = append(e.impact.Entries, entry)
	return nil
}

// lookup returns the account of the first row of the line's map that matches.
func (e *evaluation) lookup(l *line, position int) (string, error) {
	m := l.accounts
	for i := range m.rows {
		ok, err := m.rows[i].when.bool(&e.scope)
		if err != nil {
			return "", e.fail(models.CodeDocumentInvalid, l, m.rows[i].when.place, "map %q%s: %v", m.name, l.at(position),
				err)
		}
		if ok {
			return m.rows[i].account, nil
		}
	}
	return "", e.fail(models.CodeNoMatchingRule, l, m.place, "map %q has no row%s that matches %s; add one",
		m.name, l.at(position), m.sought(&e.scope))
}

// sought shows the values of the fields that the map's conditions read.
func (m *accountMap) sought(s *scope) string {
	var parts []string
	for _, r := range m.reads {
		var target any = s.doc
		if r.variable != documentVariable {
			target = s.element
		}
		switch f := r.field; {
		case f.integer != nil:
			parts = append(parts, fmt.Sprintf("%s=%d", f.name, f.integer(target)))
		case f.text != nil:
			parts = append(parts, fmt.Sprintf("%s=%q", f.name, f.text(target)))
		case f.date != nil:
			parts = append(parts, fmt.Sprintf("%s=%v", f.name, f.date(target)))
		default:
			if v, err := f.value(target); err == nil {
				parts = append(parts, f.name+"="+stated(v))
			}
		}
	}
	if len(parts) == 0 {
		return "the document"
	}
	return strings.Join(parts, ", ")
}

// maxStated is how many bytes of a list or an object a message shows: a document may have many
// lines.
const maxStated = 300

// stated writes a value as the document states it: lists and objects as JSON, and no more than
// maxStated of them.
func stated(v any) string {
	switch v.(type) {
	case map[string]string, []models.Line, []models.Tax, *models.Money:
	default:
		return fmt.Sprint(v)
	}
	text, err := json.Marshal(v)
	switch {
	case err != nil:
		return "?"
	case string(text) == "null":
		return "nothing"
	case len(text) > maxStated:
		return strings.ToValidUTF8(string(text[:maxStated]), "") + "…"
	}
	return string(text)
}

// at names the element in a message; it is empty for a line that runs over no list.
func (l *line) at(position int) string {
	switch l.each {
	case documentLines:
		return fmt.Sprintf(" for line %d of the document", position)
	case documentTaxes:
		return fmt.Sprintf(" for tax %d of the document", position)
	default:
		return ""
	}
}

func (e *evaluation) fail(code models.ErrorCode, l *line, at Place, format string, args ...any) error {
	err := &Error{Code: code, Place: at, Message: fmt.Sprintf(format, args...)}
	if e.rule != nil {
		err.Rule = e.rule.id
	}
	if l != nil {
		err.Line = l.id
	}
	return err
}
