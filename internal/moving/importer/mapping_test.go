package importer_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

// smallMapping is the least that a mapping says.
const smallMapping = `group: {key: No}
document:
  date: Day
  currency: {value: EUR}
  types: [{type: invoice}]
lines: {code: Item, quantity: Qty, price: Price}
`

func parseMapping(t *testing.T, source string) *importer.Mapping {
	t.Helper()
	m, err := importer.ParseMapping([]byte(source))
	require.NoError(t, err)
	return m
}

func TestMappingSchemaIsValid(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(importer.MappingSchema())))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mapping.schema.json", document))
	_, err = c.Compile("mapping.schema.json")
	require.NoError(t, err)
}

// TestParseMappingRefuses changes the smallest mapping and expects the problem at its place.
func TestParseMappingRefuses(t *testing.T) {
	t.Parallel()
	parseMapping(t, smallMapping)
	for change, want := range map[string]string{
		"Day=>{column: Day, layout: YYYY-DD}":                                    `3:31: "YYYY-DD" is not a layout of a date`,
		"Day=>{column: Day, layout: YYYY-MM-DD Q}":                               `is not a layout of a date`,
		"Day=>{column: Day, layout: YYYY-MM-DD MM}":                              `is not a layout of a date`,
		"date: Day=>dates: Day":                                                  `3:3: unknown key "dates"`,
		"  date: Day\n=>":                                                        `3:3: missing key "date"`,
		"{value: EUR}=>{value: EUro}":                                            `4:13: "EUro" is not a currency of ISO 4217`,
		"{value: EUR}=>{}":                                                       `4:13: give either the column or a constant value`,
		"{value: EUR}=>{value: EUR, column: C}":                                  `give either the column or a constant value`,
		"{value: EUR}=>{value: EUR, otherwise: USD}":                             `values and otherwise need a column`,
		"{value: EUR}=>{column: C, otherwise: USD}":                              `otherwise needs values`,
		"{value: EUR}=>{column: C, values: {a: USD, b: DM}}":                     `"DM" is not a currency of ISO 4217`,
		"{value: EUR}=>{column: C, vals: {a: USD}}":                              `unknown key "vals"`,
		"{value: EUR}=>[EUR]":                                                    `document.currency has none of the forms`,
		"{value: EUR}=>{value: EUR}\n  country: {value: de}":                     `5:12: "de" is not a country`,
		"{value: EUR}=>{value: EUR}\n  direction: {value: up}":                   `5:14: "up" is not "out" or "in"`,
		"{value: EUR}=>{value: EUR}\n  organization: {value: ''}":                `5:17: "" is not an organization's id`,
		"{value: EUR}=>{value: EUR}\n  attributes: {totals: X}":                  `the attribute "totals" is set by the import`,
		"{type: invoice}=>{type: invoice}, {type: b}":                            `5:28: no row reaches this: the one at 5:11 matches always`,
		"{type: invoice}=>{column: C, type: invoice}":                            `the row has a column but no condition`,
		"{type: invoice}=>{prefix: C, type: invoice}":                            `the row tests no column: document.number is not a column`,
		"{type: invoice}=>{column: C, matches: '(', type: b}":                    `5:32: "(" is not a regular expression`,
		"{type: invoice}=>{column: C, is: a, prefix: b, type: b}":                `keep one`,
		"{type: invoice}=>{column: C, is: 5, type: b}":                           `5:27: 5 is not a text; put it in quotes`,
		"{type: invoice}=>{column: C, is: [5], type: b}":                         `5:28: 5 is not a text; put it in quotes`,
		"{type: invoice}=>{type: in voice}":                                      `"in voice" is not a valid name`,
		"{type: invoice}=>{negate: true}":                                        `missing key "type"`,
		", price: Price=>":                                                       `6:8: lines needs net, or quantity and price`,
		"group=>csv: {columns: [A]}\ngroup":                                      `1:17: columns are for files without a header`,
		"group=>csv: {header: false}\ngroup":                                     `needs csv.columns`,
		"group=>csv: {header: false, columns: [No, Day, Qty, Price]}\ngroup":     `there is no column "Item" in csv.columns`,
		"group=>csv: {header: false, columns: [No, No, Day, Qty, Price]}\ngroup": `the column "No" stands here a second time`,
		"group=>csv: {encoding: ebcdic}\ngroup":                                  `1:17: csv.encoding:`,
		"group=>numbers: {decimal: ',', thousands: ','}\ngroup":                  `cannot be both`,
		"group=>group: {key: A}\ngroup":                                          `2:1: the key "group" stands here a second time`,
		"group: {key: No}=>group: &a {key: No}\nx: *a":                           `2:4: YAML aliases are not allowed`,
		"group: {key: No}=>group: {key: No":                                      `not valid YAML`,
	} {
		from, to, _ := strings.Cut(change, "=>")
		require.Contains(t, smallMapping, from)
		_, err := importer.ParseMapping([]byte(strings.Replace(smallMapping, from, to, 1)))
		require.ErrorIs(t, err, importer.ErrInvalidMapping, change)
		var e *importer.MappingError
		require.ErrorAs(t, err, &e)
		assert.Contains(t, e.Error(), want, change)
	}
	for source, want := range map[string]string{
		"": "1:1: the file is empty", "# nothing": "the file is empty", "5": "the mapping is of type",
		"[]":                         "the mapping is of type array, want object",
		"? [a]\n: b":                 "a key must be a plain name",
		smallMapping + "---\n{}":     "7:1: a second YAML document starts here",
		strings.Repeat(" ", 1<<20+1): "at most 1048576 are allowed",
	} {
		_, err := importer.ParseMapping([]byte(source))
		require.ErrorIs(t, err, importer.ErrInvalidMapping, source)
		assert.ErrorContains(t, err, want)
	}
}

// TestParseMappingReportsAllProblems: one call tells everything, in the order of the file.
func TestParseMappingReportsAllProblems(t *testing.T) {
	t.Parallel()
	source := strings.NewReplacer("EUR", "euro", "Day", "{column: Day, layout: D}", "Item",
		"{value: a, values: {b: c}}").Replace(smallMapping)
	_, err := importer.ParseMapping([]byte(source))
	var e *importer.MappingError
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Problems, 3)
	for i, line := range []int{3, 4, 6} {
		assert.Equal(t, line, e.Problems[i].Line, e.Problems[i].Message)
	}
	assert.ErrorContains(t, err, "mapping: 3 problems\n  3:")
}

// TestDocumentationOfCSV imports the example that docs/import.md shows.
func TestDocumentationOfCSV(t *testing.T) {
	t.Parallel()
	blocks := func(language string) (texts []string) {
		all, err := pages.Of("docs/import.md", language)
		require.NoError(t, err)
		for _, b := range all {
			if b.Section == "CSV" {
				texts = append(texts, b.Text)
			}
		}
		return texts
	}
	mappings, rows, documents := blocks("yaml"), blocks("csv"), blocks("json")
	require.Len(t, mappings, 3)
	require.Len(t, rows, 3)
	var results []csvResult
	for i := range mappings {
		for _, r := range readCSV(t, parseMapping(t, mappings[i]), "acme", rows[i]) {
			if !errors.Is(r.err, importer.ErrNotBookable) { // the page says which are left out
				results = append(results, r)
			}
		}
	}
	require.Len(t, results, len(documents))
	for i, want := range documents {
		require.NoError(t, results[i].err)
		parsed := read(strings.ReplaceAll(want, "\n", " "))
		require.NoError(t, parsed[0].err)
		assert.Equal(t, parsed[0].doc, results[i].doc)
	}
}

// FuzzMapping: any file is a mapping that reads rows, or is refused with problems that have a
// message.
func FuzzMapping(f *testing.F) {
	sample, err := os.ReadFile("../sample/online-retail/mapping.yaml")
	require.NoError(f, err)
	f.Add(sample)
	f.Add([]byte(smallMapping))
	f.Add([]byte(fullMapping))
	for _, name := range importer.ShippedMappings() {
		source, _ := importer.ShippedMapping(name)
		f.Add(source)
	}
	f.Add([]byte("group: &a [*a]"))
	f.Add([]byte("? [a]: b"))
	f.Add([]byte("document: {types: [{is: !!binary x}]}"))
	f.Fuzz(func(t *testing.T, source []byte) {
		m, err := importer.ParseMapping(source)
		if err != nil {
			var e *importer.MappingError
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Problems)
			for _, p := range e.Problems {
				require.NotEmpty(t, p.Message)
			}
			return
		}
		for _, r := range readCSV(t, m, "shop", retailRows, "No,Day,Item,Qty,Price\n1,2025-01-31,a,2,1.5\n") {
			if r.err == nil {
				require.NoError(t, importer.Validate(r.doc))
			}
		}
	})
}
