package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
)

// mappingBuilder turns a mapping's file into a Mapping and collects what is wrong.
type mappingBuilder struct {
	m         *Mapping
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

func (b *mappingBuilder) build(file *mappingFile) {
	m, d := b.m, &file.Document
	b.dialect(file)
	m.files = cmp.Or(file.Group.Files, filesOne)
	for _, k := range file.Group.Key {
		m.key = append(m.key, b.column(k))
	}
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
	m.date, m.valueDate = b.date(d.Date), b.date(d.ValueDate)
	m.total = b.column(d.Total)
	m.amount, m.fee, m.settled = b.signed(d.Amount), b.signed(d.Fee), signedColumn{column: noColumn}
	if d.Settled != nil {
		m.settled = b.signed(d.Settled.Amount)
		m.settledCurrency = b.field(d.Settled.Currency, "a currency of ISO 4217",
			func(s string) bool { _, ok := MinorDigits(s); return ok })
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if name == totalsAttribute || name == taxesAttribute {
			b.report(d.Attributes[name].at, "the attribute %q is set by the import; choose another name", name)
		}
		m.attributes = append(m.attributes, attribute{name, b.field(d.Attributes[name], "", nil)})
	}
	m.types = b.choices(d.Types, m.number, "document.number", func(c choiceText) string { return c.Type })
	m.shared = sharedColumns(m)
	if file.Lines != nil {
		b.lines(file.Lines)
	} else if m.total == noColumn && m.amount.column == noColumn {
		b.report(nil, "there is no lines, and without it a document needs an amount: add lines, document.total, or "+
			"document.amount")
	}
}

func (b *mappingBuilder) lines(l *linesText) {
	m := b.m
	m.lines = true
	m.code, m.description = b.field(l.Code, "", nil), b.field(l.Description, "", nil)
	m.quantity, m.price, m.net = b.column(l.Quantity), b.column(l.Price), b.column(l.Net)
	m.taxAmount, m.taxRate = b.column(l.Tax.Amount), b.column(l.Tax.Rate)
	m.taxCategory = b.field(l.Tax.Category, "", nil)
	m.taxIncluded, m.rates = l.Tax.Included, l.Tax.Rates
	m.kinds = b.choices(l.Kinds, m.code, "lines.code", func(c choiceText) string { return c.Kind })
}

// sharedColumns returns the columns whose cells may decide about a whole document.
func sharedColumns(m *Mapping) []int {
	columns := []int{m.date.column, m.valueDate.column, m.total, m.amount.column, m.fee.column, m.settled.column}
	for _, f := range []field{
		m.organization, m.number, m.currency, m.direction, m.counterparty, m.country,
		m.settledCurrency,
	} {
		columns = append(columns, f.column)
	}
	for _, a := range m.attributes {
		columns = append(columns, a.field.column)
	}
	for _, c := range m.types {
		columns = append(columns, c.column)
	}
	slices.Sort(columns)
	return slices.DeleteFunc(slices.Compact(columns), func(c int) bool { return c == noColumn })
}

// dialect copies how the files are written.
func (b *mappingBuilder) dialect(file *mappingFile) {
	m := b.m
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
	for _, row := range file.CSV.Skip {
		if row.Is == nil && row.Prefix.at == nil && row.Matches.at == nil {
			b.report(row.at, "the row would skip every row of the files; add is, prefix or matches")
		}
	}
	m.skip = b.choices(file.CSV.Skip, field{column: noColumn}, "csv.skip", func(choiceText) string { return "" })
}

func (b *mappingBuilder) signed(s signedText) signedColumn {
	return signedColumn{column: b.column(s.Column), negate: s.Negate}
}

// column returns the position of a column among those that are read.
func (b *mappingBuilder) column(name placedText) int {
	if name.at == nil {
		return noColumn
	}
	if len(b.m.all) > 0 && !slices.Contains(b.m.all, name.text) {
		b.report(name.at, "there is no column %q in csv.columns", name.text)
	}
	position, ok := b.positions[name.text]
	if !ok {
		position = len(b.m.columns)
		b.positions[name.text] = position
		b.m.columns = append(b.m.columns, name.text)
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
	return dateField{column: b.column(d.Column), layouts: layouts, wanted: wanted}
}

// choices copies a table. A row without a column tests the column of usual, which messages call
// name.
func (b *mappingBuilder) choices(rows []choiceText, usual field, name string, result func(choiceText) string) []choice {
	var choices []choice
	var always *yaml.Node
	for _, row := range rows {
		c := choice{
			column: b.column(row.Column), result: result(row), negate: row.Negate, direction: row.Direction,
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
