package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
)

// mappingBuilder turns a mapping's file into a Mapping and collects what is wrong.
type mappingBuilder struct {
	// dialect is what all documents of the mapping have in common.
	dialect   Mapping
	columns   []string // those that are read
	positions map[string]int
	problems  []MappingProblem
}

func (b *mappingBuilder) report(at *yaml.Node, format string, args ...any) {
	p := MappingProblem{Message: fmt.Sprintf(format, args...)}
	if at != nil {
		p.Line, p.Column = at.Line, at.Column
	}
	b.problems = append(b.problems, p)
}

// build returns the mapping of the first document, which has the others.
func (b *mappingBuilder) build(file *mappingFile) *Mapping {
	b.readDialect(file)
	b.dialect.files = cmp.Or(file.Group.Files, filesOne)
	for _, k := range file.Group.Key {
		b.dialect.key = append(b.dialect.key, b.column(k))
	}
	var all []*Mapping
	if len(file.Documents) == 0 {
		if file.Document.Lines == nil {
			file.Document.Lines = file.Lines
		}
		all = append(all, b.document(&file.Document))
	} else if file.Lines != nil {
		b.report(file.Lines[0].at, "lines belong to an element of documents; move them there")
	}
	for i := range file.Documents {
		d, at := file.Document, &file.Documents[i]
		d.Attributes, d.Dimensions = maps.Clone(d.Attributes), maps.Clone(d.Dimensions)
		if d.Settled != nil {
			settled := *d.Settled
			d.Settled = &settled
		}
		if err := at.Decode(&d); err != nil {
			b.report(at, "%v", err)
			continue
		}
		all = append(all, b.document(&d))
	}
	for _, m := range all {
		m.columns = b.columns
		if m != all[0] {
			all[0].also = append(all[0].also, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// document copies how rows become a document.
func (b *mappingBuilder) document(d *documentText) *Mapping {
	m := b.dialect
	m.name = d.Name.text
	m.rows = b.rows(d.Rows, "take")
	m.organization = b.field(d.Organization, "an organization's id: 1 to 255 bytes",
		func(s string) bool { return s != "" && len(s) <= maxIDBytes })
	m.number = b.field(d.Number, "", nil)
	m.currency = b.field(d.Currency, "a currency of ISO 4217 with a minor unit",
		func(s string) bool { _, ok := MinorDigits(s); return ok })
	m.direction = field{column: noColumn, constant: string(models.DirectionOut)}
	if d.Direction.at != nil {
		m.direction = b.field(d.Direction, `"out" or "in"`, validDirection)
	}
	m.counterparty = b.field(d.Counterparty, "", nil)
	m.country = b.field(d.Country, "a country of two capital letters, or empty", validCountry)
	m.date, m.valueDate, m.dueDate = b.date(d.Date), b.date(d.ValueDate), b.date(d.DueDate)
	m.refersTo = b.field(d.RefersTo, "", nil)
	m.total = b.column(d.Total)
	m.amount, m.fee, m.settled = b.signed(d.Amount), b.signed(d.Fee), signedColumn{column: noColumn}
	if d.Settled != nil {
		m.settled = b.signed(d.Settled.Amount)
		m.settledCurrency = b.field(d.Settled.Currency, "a currency of ISO 4217",
			func(s string) bool { _, ok := MinorDigits(s); return ok })
	}
	for _, name := range []string{taxesAttribute, totalsAttribute} {
		if f, ok := d.Attributes[name]; ok {
			b.report(f.at, "the attribute %q is set by the import; choose another name", name)
		}
	}
	m.attributes = b.named(d.Attributes, nil)
	m.dimensions = b.named(d.Dimensions, validDimension)
	m.types = b.choices(d.Types, m.number, "document.number", func(c choiceText) string { return c.Type })
	for _, row := range d.Types {
		switch {
		case row.Type == "" && !row.Skip:
			b.report(row.at, "missing key \"type\"; add it, or skip: true")
		case row.Type != "" && row.Skip:
			b.report(row.at, "a document that is left out has no type; remove type, or skip")
		}
	}
	for _, t := range d.Taxes {
		m.taxes = append(m.taxes, b.documentTax(t))
	}
	m.shared = sharedColumns(&m)
	for i := range d.Lines {
		m.lines = append(m.lines, b.line(&d.Lines[i]))
	}
	for _, missing := range []struct {
		key    string
		absent bool
	}{
		{"date", d.Date.Column.at == nil}, {"currency", d.Currency.at == nil}, {"types", d.Types == nil},
	} {
		if missing.absent {
			b.report(d.at, "missing key %q; add it", missing.key)
		}
	}
	if len(m.lines) == 0 && m.total == noColumn && m.amount.column == noColumn && m.fee.column == noColumn {
		b.report(nil, "there is no lines, and without it a document needs an amount: add lines, document.total, or "+
			"document.amount")
	}
	if len(m.taxes) > 0 && (m.total == noColumn || len(m.lines) == 0) {
		b.report(d.Taxes[0].at, "taxes of a whole document need document.total, which says whether they are part of the "+
			"lines, and lines")
	}
	return &m
}

// named copies fields with names, in the order of these.
func (b *mappingBuilder) named(fields map[string]fieldText, valid func(string) bool) []attribute {
	var all []attribute
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, attribute{name, b.field(fields[name], "a text on one line, without blanks at its ends", valid)})
	}
	return all
}

func validDimension(s string) bool { return models.CheckDimension("key", s) == nil }

func (b *mappingBuilder) documentTax(t taxText) documentTax {
	return documentTax{
		amount: b.column(t.Amount), rate: b.column(t.Rate), percent: b.percent(t.Percent), category: b.field(t.Category, "", nil),
	}
}

// percent returns the expression that finds a rate in its column's text; nil: the text is the rate.
func (b *mappingBuilder) percent(text placedText) *regexp.Regexp {
	if text.at == nil {
		return nil
	}
	expression, err := regexp.Compile(text.text)
	if err != nil || expression.NumSubexp() != 1 {
		b.report(text.at, "%q is not a regular expression with one group, such as ([0-9.]+)%%", text.text)
		return nil
	}
	return expression
}

func (b *mappingBuilder) line(l *lineText) lineMapping {
	m := lineMapping{
		rows: b.rows(l.Rows, "take"), code: b.field(l.Code, "", nil), description: b.field(l.Description, "", nil),
		quantity: b.column(l.Quantity), price: b.column(l.Price), net: b.signed(l.Net),
		taxAmount: b.column(l.Tax.Amount), taxRate: b.column(l.Tax.Rate), taxCategory: b.field(l.Tax.Category, "", nil),
		taxPercent: b.percent(l.Tax.Percent), taxIncluded: l.Tax.Included, rates: l.Tax.Rates,
	}
	m.dimensions = b.named(l.Dimensions, validDimension)
	m.kinds = b.choices(l.Kinds, m.code, "lines.code", func(c choiceText) string { return c.Kind })
	if m.net.column == noColumn && (m.quantity == noColumn || m.price == noColumn) {
		b.report(l.at, "lines needs net, or quantity and price")
	}
	if l.Tax.at != nil && m.taxAmount == noColumn && m.taxRate == noColumn {
		b.report(l.Tax.at, "lines.tax needs amount, rate, or both")
	}
	return m
}

// rows copies a table of rows, each of which must have a condition.
func (b *mappingBuilder) rows(rows []choiceText, do string) []choice {
	for _, row := range rows {
		if row.Is == nil && row.Prefix.at == nil && row.Matches.at == nil {
			b.report(row.at, "the row would %s every row of the files; add is, prefix or matches", do)
		}
	}
	return b.choices(rows, field{column: noColumn}, "the table", func(choiceText) string { return "" })
}

// sharedColumns returns the columns whose cells may decide about a whole document.
func sharedColumns(m *Mapping) []int {
	columns := []int{m.date.column, m.valueDate.column, m.dueDate.column, m.total, m.amount.column, m.fee.column, m.settled.column}
	for _, f := range []field{
		m.organization, m.number, m.currency, m.direction, m.counterparty, m.country,
		m.settledCurrency, m.refersTo,
	} {
		columns = append(columns, f.column)
	}
	for _, a := range slices.Concat(m.attributes, m.dimensions) {
		columns = append(columns, a.field.column)
	}
	for _, c := range m.types {
		columns = append(columns, c.column)
	}
	for _, t := range m.taxes {
		columns = append(columns, t.amount, t.rate, t.category.column)
	}
	slices.Sort(columns)
	return slices.DeleteFunc(slices.Compact(columns), func(c int) bool { return c == noColumn })
}

// readDialect copies how the files are written.
func (b *mappingBuilder) readDialect(file *mappingFile) {
	m := &b.dialect
	m.separator = []rune(cmp.Or(file.CSV.Separator, ","))[0]
	m.encoding = cmp.Or(file.CSV.Encoding, encodingUTF8)
	m.header = file.CSV.Header == nil || *file.CSV.Header
	m.preamble = file.CSV.Preamble
	m.decimal, m.thousands = cmp.Or(file.Numbers.Decimal, "."), oneSeparator(file.Numbers.Thousands.text)
	if m.decimal == m.thousands {
		b.report(file.Numbers.Thousands.at, "%q cannot be both the decimal sign and what separates thousands", m.decimal)
	}
	for _, c := range file.CSV.Columns {
		if slices.Contains(m.all, c.text) {
			b.report(c.at, "the column %q stands here a second time; give it a name of its own", c.text)
		}
		m.all = append(m.all, c.text)
	}
	switch {
	case m.header && len(m.all) > 0:
		b.report(file.CSV.Columns[0].at, "columns are for files without a header; remove them, or set header: false")
	case !m.header && len(m.all) == 0:
		b.report(nil, "a file without a header needs csv.columns, the names of its columns in order")
	}
	m.skip = b.rows(file.CSV.Skip, "skip")
}

func (b *mappingBuilder) signed(s signedText) signedColumn {
	return signedColumn{column: b.column(s.Column), negate: s.Negate}
}

// column returns the position of a column among those that are read.
func (b *mappingBuilder) column(name placedText) int {
	if name.at == nil {
		return noColumn
	}
	if len(b.dialect.all) > 0 && !slices.Contains(b.dialect.all, name.text) {
		b.report(name.at, "there is no column %q in csv.columns", name.text)
	}
	position, ok := b.positions[name.text]
	if !ok {
		position = len(b.columns)
		b.positions[name.text] = position
		b.columns = append(b.columns, name.text)
	}
	return position
}

// field copies a field. Its constants must be valid, if that is given; what names what is wanted.
func (b *mappingBuilder) field(f fieldText, want string, valid func(string) bool) field {
	if f.at == nil {
		return field{column: noColumn}
	}
	if (f.Column.at == nil) == (f.Value == nil) {
		b.report(f.at, "give either the column or a constant value")
	}
	if f.Value != nil && (len(f.Values) > 0 || f.Otherwise != nil) {
		b.report(f.at, "values and otherwise need a column")
	}
	if f.Otherwise != nil && len(f.Values) == 0 {
		b.report(f.at, "otherwise needs values")
	}
	check := func(text string) {
		if valid != nil && !valid(text) {
			b.report(f.at, "%q is not %s", text, want)
		}
	}
	result := field{column: b.column(f.Column), values: f.Values, otherwise: f.Otherwise}
	if f.Value != nil {
		result.constant = *f.Value
		check(*f.Value)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Values)) {
		check(f.Values[key])
	}
	if f.Otherwise != nil {
		check(*f.Otherwise)
	}
	return result
}

func (b *mappingBuilder) date(d dateText) dateField {
	wanted := cmp.Or(d.Layout.text, isoLayout)
	layouts, ok := dateLayouts(wanted)
	if !ok {
		b.report(d.Layout.at, "%q is not a layout of a date; write it with YYYY or YY, MM or M, DD or D, and hh, mm, ss "+
			"and Z if there are "+
			"a time and a time zone", wanted)
	}
	f := dateField{column: b.column(d.Column), layouts: layouts, wanted: wanted}
	if d.Zone.at != nil {
		zone, err := time.LoadLocation(d.Zone.text)
		if err != nil || d.Zone.text == "" || d.Zone.text == "Local" {
			b.report(d.Zone.at, "%q is not a time zone such as Europe/Berlin", d.Zone.text)
		}
		f.zone = zone
	}
	return f
}

// choices copies a table. A row without a column tests the column of usual, which messages call
// name.
func (b *mappingBuilder) choices(rows []choiceText, usual field, name string, result func(choiceText) string) []choice {
	var choices []choice
	var always *yaml.Node
	for _, row := range rows {
		c := choice{
			column: b.column(row.Column), result: result(row), negate: row.Negate, skip: row.Skip, direction: row.Direction,
			test: b.test(row),
		}
		switch {
		case always != nil:
			b.report(row.at, "no row reaches this: the one at %d:%d matches always; move it to the end", always.Line,
				always.Column)
		case c.test == nil && row.Column.at != nil:
			b.report(row.at, "the row has a column but no condition; add is, prefix or matches")
		case c.test == nil:
			always = row.at
		case row.Column.at == nil && usual.constantField():
			b.report(row.at, "the row tests no column: %s is not a column; name one", name)
		case row.Column.at == nil:
			c.column = usual.column
		}
		choices = append(choices, c)
	}
	return choices
}

// test returns the condition of a row; nil: it has none.
func (b *mappingBuilder) test(row choiceText) func(string) bool {
	var tests []func(string) bool
	if row.Is != nil {
		texts := make(map[string]bool, len(row.Is))
		for _, t := range row.Is {
			texts[t.text] = true
		}
		tests = append(tests, func(cell string) bool { return texts[cell] })
	}
	if row.Prefix.at != nil {
		tests = append(tests, func(cell string) bool { return strings.HasPrefix(cell, row.Prefix.text) })
	}
	if row.Matches.at != nil {
		pattern, err := regexp.Compile(row.Matches.text)
		if err != nil {
			b.report(row.Matches.at, "%q is not a regular expression: %v", row.Matches.text, err)
			return func(string) bool { return false }
		}
		tests = append(tests, pattern.MatchString)
	}
	switch len(tests) {
	case 0:
		return nil
	case 1:
		return tests[0]
	}
	b.report(row.at, "the row has several of is, prefix and matches; keep one, or write one regular expression")
	return tests[0]
}

func validDirection(s string) bool {
	return s == string(models.DirectionOut) || s == string(models.DirectionIn)
}

func validCountry(s string) bool {
	return s == "" || len(s) == 2 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
