package importer

import (
	"regexp"
	"slices"

	"github.com/daybook-dev/daybook/models"
)

// Mapping says how the rows of CSV files become documents. It never changes and is safe for
// concurrent use.
type Mapping struct {
	separator rune
	encoding  encoding
	header    bool
	preamble  int // lines above the header
	skip      []choice
	// all are the columns of a file without a header, in order; columns are those that the mapping
	// reads.
	all, columns       []string
	decimal, thousands string

	key   []int // positions in columns
	files grouping

	organization, number, currency, direction, counterparty, country field
	date, valueDate, dueDate                                         dateField
	// refersTo names the documents that it pays or corrects, with commas or semicolons between.
	refersTo             field
	total                int
	amount, fee, settled signedColumn
	settledCurrency      field
	attributes           []attribute
	dimensions           []attribute
	types                []choice
	// taxes are those that the source states for a whole document.
	taxes []documentTax
	// shared are the columns of what belongs to a whole document.
	shared []int
	// lines are those that a row becomes; none: a row is a document.
	lines []lineMapping

	// name tells this document from the others of the same rows; rows are those it is made of, all if
	// there are none.
	name string
	rows []choice
	// also are the further documents that the same rows become.
	also []*Mapping
}

// documents are what the rows of a file become.
func (m *Mapping) documents() []*Mapping { return append([]*Mapping{m}, m.also...) }

// takes reports whether a row belongs to the document.
func (m *Mapping) takes(cells []string) bool { return among(m.rows, cells) }

// among reports whether a row matches one of a table's; every row does where there is no table.
func among(rows []choice, cells []string) bool {
	_, ok := matching(rows, cells)
	return ok || len(rows) == 0
}

// lineMapping says how a row becomes a line.
type lineMapping struct {
	rows                                []choice
	code, description, taxCategory      field
	net                                 signedColumn
	quantity, price, taxAmount, taxRate int
	taxPercent                          *regexp.Regexp // finds the rate in its column's text
	taxIncluded                         bool
	rates                               rateUnit
	kinds                               []choice
	dimensions                          []attribute
}

// documentTax is a tax that the source states for a whole document.
type documentTax struct {
	amount, rate int
	// percent finds the rate in its column's text.
	percent  *regexp.Regexp
	category field
}

// encoding is how the files write letters.
type encoding string

const (
	encodingUTF8        encoding = "utf-8"
	encodingUTF16       encoding = "utf-16"
	encodingLatin1      encoding = "latin1"
	encodingWindows1252 encoding = "windows-1252"
)

// grouping says in which files rows with the same key belong to the same document.
type grouping string

const (
	filesOne    grouping = "one"
	filesJoined grouping = "joined"
	filesApart  grouping = "apart"
)

// defaultKind is the kind of a line that no row of the table matches.
const defaultKind = "item"

// noColumn stands for a column that the mapping does not name.
const noColumn = -1

// field is where a text comes from: a column, perhaps through a table, or a constant. The zero
// value is empty.
type field struct {
	column    int // position in columns, or noColumn
	constant  string
	values    map[string]string
	otherwise *string
}

func (f field) constantField() bool { return f.column == noColumn }

// attribute is a value with a name: an attribute, or a dimension.
type attribute struct {
	name  string
	field field
}

// choice is a row of a table: the result for cells that match.
type choice struct {
	column int // noColumn: it matches always
	test   func(string) bool
	result string
	negate bool
	// skip: the document is left out.
	skip bool
	// direction is that of the document; empty: the mapping's.
	direction models.Direction
}

// matching returns the first choice that a row of cells matches.
func matching(choices []choice, cells []string) (choice, bool) {
	for _, c := range choices {
		if c.column == noColumn || c.test(cells[c.column]) {
			return c, true
		}
	}
	return choice{}, false
}

// ParseMapping reads a mapping from YAML, compares it with MappingSchema and checks what the schema
// cannot express: patterns, date layouts, currencies. All problems are reported together as a
// *MappingError.
func ParseMapping(source []byte) (*Mapping, error) {
	root, problems := mappingTree(source)
	if len(problems) > 0 {
		return nil, mappingError(problems)
	}
	var file mappingFile
	if err := root.Decode(&file); err != nil {
		return nil, mappingError([]MappingProblem{{Message: "the file is not valid YAML: " + err.Error()}})
	}
	b := &mappingBuilder{positions: map[string]int{}}
	m := b.build(&file)
	if len(b.problems) > 0 {
		return nil, mappingError(b.problems)
	}
	return m, nil
}

func mappingError(problems []MappingProblem) error {
	slices.SortStableFunc(problems, func(a, b MappingProblem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &MappingError{Problems: slices.Compact(problems)}
}
