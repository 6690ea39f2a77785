package importer

import (
	"regexp"
	"slices"
	"strings"
)

// Mapping says how the rows of CSV files become documents. It never changes and is safe for concurrent use.
type Mapping struct {
	separator rune
	encoding  string
	header    bool
	// all are the columns of a file without a header, in order; columns are those that the mapping reads.
	all, columns       []string
	decimal, thousands string

	key   []int // positions in columns
	files grouping

	organization, number, currency, direction, counterparty, country field
	date, valueDate                                                  dateField
	total                                                            int
	attributes                                                       []attribute
	types                                                            []choice
	// shared are the columns of what belongs to a whole document.
	shared []int

	code, description, taxCategory           field
	quantity, price, net, taxAmount, taxRate int
	kinds                                    []choice
}

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

// field is where a text comes from: a column, perhaps through a table, or a constant. The zero value is empty.
type field struct {
	column    int // position in columns, or noColumn
	constant  string
	values    map[string]string
	otherwise *string
}

func (f field) constantField() bool { return f.column == noColumn }

// dateField is a column with dates; layout is Go's.
type dateField struct {
	column         int
	layout, wanted string
}

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

// ParseMapping reads a mapping from YAML, compares it with MappingSchema and checks what the schema cannot express: patterns, date
// layouts, currencies. All problems are reported together as a *MappingError.
func ParseMapping(source []byte) (*Mapping, error) {
	root, problems := mappingTree(source)
	if len(problems) > 0 {
		return nil, mappingError(problems)
	}
	var file mappingFile
	if err := root.Decode(&file); err != nil {
		return nil, mappingError([]MappingProblem{yamlProblem(err)})
	}
	b := &mappingBuilder{m: &Mapping{}, positions: map[string]int{}}
	b.build(&file)
	if len(b.problems) > 0 {
		return nil, mappingError(b.problems)
	}
	return b.m, nil
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

// dateLayout translates a layout of YYYY, MM, M, DD, D, hh, mm, ss and signs to Go's. ok is false if it has other letters or
// digits, or if it does not name a day.
func dateLayout(layout string) (translated string, ok bool) {
	named := map[string]bool{}
	ok = true
	translated = layoutWords.ReplaceAllStringFunc(layout, func(word string) string {
		known, found := layoutParts[word]
		ok = ok && found && !named[known.part]
		named[known.part] = true
		return known.text
	})
	return translated, ok && named["year"] && named["month"] && named["day"] && !strings.ContainsAny(layout, "_,")
}

var (
	// A T that stands between date and time is a sign.
	layoutWords = regexp.MustCompile(`Y+|M+|D+|h+|m+|s+|[A-SU-Za-z0-9]`)
	layoutParts = map[string]struct{ text, part string }{
		"YYYY": {"2006", "year"}, "MM": {"01", "month"}, "M": {"1", "month"}, "DD": {"02", "day"}, "D": {"2", "day"},
		"hh": {"15", "hour"}, "mm": {"04", "minute"}, "ss": {"05", "second"},
	}
)
