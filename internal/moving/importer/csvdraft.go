package importer

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// totalsAttribute is the attribute of a document whose totals are the sum of its lines, because the
// source states none; its value is totalsDerived.
const (
	totalsAttribute = "totals"
	totalsDerived   = "derived"
)

// maxRowErrors is how many bad rows the message about a document shows.
const maxRowErrors = 3

// draft is a document of which not all rows have been read.
type draft struct {
	mapping *Mapping
	place   string // where it begins
	rows    int
	bytes   int // about what the lines need in memory
	doc     models.Document
	digits  int
	negate  bool
	stated  bool // a cell has an amount
	skip    bool // the mapping leaves the document out
	// first holds the cells of the first good row; what belongs to the document must be the same in
	// all.
	first   []string
	total   *int64
	taxes   map[taxKey]int
	whole   []models.Tax // that are stated for the whole document
	open    []openTax
	sum     *big.Int
	reasons []string // of the first bad rows
	refused int      // number of bad rows
}

func newDraft(m *Mapping, org, id, place string) *draft {
	d := &draft{mapping: m, place: place, sum: new(big.Int), taxes: map[taxKey]int{}}
	d.doc = models.Document{OrgID: org, ID: id, Content: models.Content{Source: "csv"}}
	return d
}

// add adds a row. One bad row refuses the document, but all rows are checked, so that they can be
// corrected together.
func (d *draft) add(file string, row csvRow) {
	d.rows++
	var lines []*lineMapping
	for i := range d.mapping.lines {
		if l := &d.mapping.lines[i]; row.err == nil && among(l.rows, row.cells) {
			lines = append(lines, l)
		}
	}
	err := row.err
	if err == nil && d.first == nil {
		err = d.head(row.cells)
	} else if err == nil {
		err = d.agrees(row.cells)
	}
	for _, l := range lines {
		if err == nil && !d.skip {
			err = d.line(l, row.cells)
		}
	}
	if err == nil {
		return
	}
	d.refused++
	d.doc.Content.Lines = nil
	if len(d.reasons) < maxRowErrors {
		d.reasons = append(d.reasons,
			fmt.Sprintf("%s: line %d: %s", file, row.line, strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": ")))
	}
}

// text returns the value of a field in a row.
func (d *draft) text(f field, cells []string) (string, error) {
	if f.constantField() {
		return f.constant, nil
	}
	cell := cells[f.column]
	if f.values == nil {
		return cell, nil
	}
	if text, ok := f.values[cell]; ok {
		return text, nil
	}
	if f.otherwise != nil {
		return *f.otherwise, nil
	}
	return "", invalid("%s: the mapping has no value for %.40q; add it, or otherwise", d.mapping.columns[f.column], cell)
}

// head takes from a row what belongs to the whole document.
func (d *draft) head(cells []string) error {
	m, doc := d.mapping, &d.doc
	var direction, refers string
	for _, f := range []struct {
		field field
		to    *string
	}{
		{m.number, &doc.Content.Number},
		{m.currency, &doc.Currency},
		{m.direction, &direction},
		{m.counterparty, &doc.Content.Counterparty},
		{m.country, &doc.Content.Country},
		{m.refersTo, &refers},
	} {
		var err error
		if *f.to, err = d.text(f.field, cells); err != nil {
			return err
		}
		*f.to = strings.Clone(*f.to) // a cell is a part of its whole row
	}
	doc.Currency = strings.ToUpper(doc.Currency)
	doc.Content.RefersTo = statedEach(strings.FieldsFunc(refers, func(r rune) bool { return r == ',' || r == ';' }))
	if doc.OrgID == "" {
		org, err := d.text(m.organization, cells)
		if err != nil {
			return err
		}
		doc.OrgID = strings.Clone(org)
	}
	doc.Direction = models.Direction(direction)
	if err := models.CheckCurrency(doc.Currency, models.Date{}); err != nil { // Validate asks for the date
		return invalid("currency: %w", err)
	}
	digits, _ := MinorDigits(doc.Currency)
	switch {
	case !validDirection(direction):
		return invalid("direction is %.20q; want \"out\" or \"in\"; add values that translate it", direction)
	case !validCountry(doc.Content.Country):
		return invalid("country %.40q is not a code of two capital letters (ISO 3166-1); add values that translate it",
			doc.Content.Country)
	}
	d.digits = digits
	chosen, ok := matching(m.types, cells)
	if !ok {
		return invalid("no row of document.types matches; add one without a condition for all others")
	}
	doc.Type, d.negate, d.skip = models.DocumentType(chosen.result), chosen.negate, chosen.skip
	doc.Direction = cmp.Or(chosen.direction, doc.Direction)
	for _, a := range m.attributes {
		text, err := d.text(a.field, cells)
		if err != nil {
			return err
		}
		if text != "" {
			d.attribute(a.name, strings.Clone(text))
		}
	}
	var err error
	if doc.Content.Dimensions, err = d.dimensions(m.dimensions, cells); err != nil {
		return err
	}
	if err := d.dates(cells); err != nil {
		return err
	}
	if m.total != noColumn {
		total, err := d.amount(cells, m.total)
		if err != nil {
			return err
		}
		d.total = &total
	}
	if err := d.money(cells); err != nil {
		return err
	}
	if err := d.statedTaxes(cells); err != nil {
		return err
	}
	d.first = slices.Clone(cells)
	return nil
}

func (d *draft) attribute(name, value string) {
	if d.doc.Content.Attributes == nil {
		d.doc.Content.Attributes = map[string]string{}
	}
	d.doc.Content.Attributes[name] = value
}

func (d *draft) dates(cells []string) error {
	issued, err := d.date(d.mapping.date, cells)
	if err != nil {
		return err
	}
	d.doc.IssueDate = issued
	if c := d.mapping.valueDate.column; c != noColumn && cells[c] != "" {
		value, err := d.date(d.mapping.valueDate, cells)
		if err != nil {
			return err
		}
		d.doc.ValueDate = &value
	}
	if c := d.mapping.dueDate.column; c != noColumn && cells[c] != "" {
		d.doc.Content.DueDate, err = d.date(d.mapping.dueDate, cells)
	}
	return err
}

func dayText(d *models.Date) string {
	if d == nil {
		return ""
	}
	return d.String()
}

func totalText(minor *int64) string {
	if minor == nil {
		return ""
	}
	return strconv.FormatInt(*minor, 10)
}

func settledText(m *models.Money) string {
	if m == nil {
		return ""
	}
	return totalText(&m.Amount) + " " + m.Currency
}

// agrees checks that a further row has the same values for the whole document as the first row. An
// empty cell states nothing: shops write what belongs to an order on its first row alone.
func (d *draft) agrees(cells []string) error {
	if len(d.mapping.lines) == 0 {
		return invalid("it is a second row of the document, and without lines a row is a document; group.key must tell " +
			"them apart")
	}
	for _, column := range d.mapping.shared {
		if cells[column] == "" {
			cells[column] = d.first[column]
		}
	}
	if !slices.ContainsFunc(d.mapping.shared, func(column int) bool { return cells[column] != d.first[column] }) {
		return nil
	}
	other := draft{mapping: d.mapping, doc: models.Document{ID: d.doc.ID}}
	if err := other.head(cells); err != nil {
		return err
	}
	a, b := &d.doc, &other.doc
	for _, pair := range []struct{ what, first, here string }{
		{"the number", a.Content.Number, b.Content.Number},
		{"the type", string(a.Type), string(b.Type)},
		{"the direction", string(a.Direction), string(b.Direction)},
		{"the currency", a.Currency, b.Currency},
		{"the date", a.IssueDate.String(), b.IssueDate.String()},
		{"the value date", dayText(a.ValueDate), dayText(b.ValueDate)},
		{"the due date", a.Content.DueDate.String(), b.Content.DueDate.String()},
		{"what it refers to", strings.Join(a.Content.RefersTo, ","), strings.Join(b.Content.RefersTo, ",")},
		{"the counterparty", a.Content.Counterparty, b.Content.Counterparty},
		{"the country", a.Content.Country, b.Content.Country},
		{"the total", totalText(d.total), totalText(other.total)},
		{"the amount", totalText(&a.Content.Amount), totalText(&b.Content.Amount)},
		{"the fee", totalText(&a.Content.Fee), totalText(&b.Content.Fee)},
		{"what was settled", settledText(a.Content.Settled), settledText(b.Content.Settled)},
		{"the text of dimensions", a.Content.Dimensions.String(), b.Content.Dimensions.String()},
		{"the taxes", fmt.Sprint(d.whole), fmt.Sprint(other.whole)},
	} {
		if pair.first != pair.here {
			return invalid("%s is %.40q, and %.40q in the document's first row; rows of one document must agree", pair.what,
				pair.here, pair.first)
		}
	}
	for _, x := range d.mapping.attributes {
		if first, here := a.Content.Attributes[x.name], b.Content.Attributes[x.name]; first != here {
			return invalid("the attribute %s is %.40q, and %.40q in the document's first row; rows of one document must agree", x.name, here, first)
		}
	}
	if d.negate != other.negate {
		return invalid("the row of document.types that matches is another than for the document's first row")
	}
	return nil
}

// finish returns the document when all its rows were taken.
func (d *draft) finish() (models.Document, error) {
	if d.refused > 0 {
		more := ""
		if n := d.refused - len(d.reasons); n > 0 {
			more = fmt.Sprintf("; and %d more", n)
		}
		return models.Document{}, invalid("%s%s", strings.Join(d.reasons, "; "), more)
	}
	if d.skip {
		return models.Document{}, &NotBookableError{Schema: "a document that the mapping leaves out (skip)"}
	}
	if err := d.computeTaxes(); err != nil {
		return models.Document{}, err
	}
	if err := d.takeTaxes(); err != nil {
		return models.Document{}, err
	}
	if err := d.totals(); err != nil {
		return models.Document{}, err
	}
	c := &d.doc.Content
	c.Zero = d.stated && !c.StatesAmount()
	slices.SortStableFunc(c.Taxes, func(a, b models.Tax) int {
		return cmp.Or(cmp.Compare(a.Category, b.Category), b.Rate.Compare(a.Rate))
	})
	if err := Validate(d.doc); err != nil {
		return models.Document{}, err
	}
	return d.doc, nil
}

// totals fills what the document comes to: what the source states or, where it states none, the sum
// of the lines and taxes. For a payment, refund or payout that is its amount as well, unless the
// mapping has a column of its own for that.
func (d *draft) totals() error {
	c := &d.doc.Content
	total, err := toInt64(d.sum, d.sum.String())
	switch {
	case err != nil:
		return fmt.Errorf("the sum of the lines: %w", err)
	case d.total != nil:
		total = *d.total
	case len(d.mapping.lines) > 0:
		d.attribute(totalsAttribute, totalsDerived)
	default: // the mapping reads document.amount alone
		return nil
	}
	c.Total, c.Payable = total, total
	if !hasAmount(d.doc.Type) || d.mapping.amount.column != noColumn {
		return nil
	}
	if len(d.mapping.lines) > 0 && d.sum.Cmp(big.NewInt(total)) != 0 {
		return invalid("its total is %d and its %d rows come to %s, in minor units; do they share a group.key by mistake?",
			total, d.rows, d.sum)
	}
	c.Amount = total
	return nil
}
