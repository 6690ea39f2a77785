package importer

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/daybook-dev/daybook/models/strictyaml"
)

// maxMappingBytes bounds a mapping file.
const maxMappingBytes = 1 << 20

//go:embed mapping.schema.json
var mappingSchema []byte

// MappingSchema returns the JSON Schema (draft 2020-12) of a mapping file, for editors and other
// tools. ParseMapping checks more than the schema can express.
func MappingSchema() []byte { return bytes.Clone(mappingSchema) }

// MappingProblem is one thing that is wrong with a mapping file, with its place counted from 1; 0
// is no place.
type MappingProblem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// MappingError lists everything that is wrong with a mapping file, in the order of the file.
// errors.Is(err, ErrInvalidMapping) holds for it.
type MappingError struct{ Problems []MappingProblem }

// Error returns one line for each problem.
func (e *MappingError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Message
		if p.Line > 0 {
			lines[i] = fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message)
		}
	}
	if len(lines) == 1 {
		return "mapping: " + lines[0]
	}
	return fmt.Sprintf("mapping: %d problems\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Unwrap returns ErrInvalidMapping.
func (e *MappingError) Unwrap() error { return ErrInvalidMapping }

var compiledMappingSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(mappingSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mapping.schema.json", document); err != nil {
		return nil, err
	}
	return c.Compile("mapping.schema.json")
})

// mappingTree reads the YAML of a mapping and compares it with the schema.
func mappingTree(source []byte) (*yaml.Node, []MappingProblem) {
	if len(source) > maxMappingBytes {
		return nil, []MappingProblem{{Message: fmt.Sprintf("the file has %d bytes; at most %d are allowed", len(source),
			maxMappingBytes)}}
	}
	root, value, wrong := strictyaml.Parse(source)
	if len(wrong) == 0 {
		return root, schemaProblems(root, value)
	}
	problems := make([]MappingProblem, len(wrong))
	for i, w := range wrong {
		if w.Message == strictyaml.Empty {
			w.Message += "; see https://github.com/daybook-dev/daybook/blob/main/docs/import.md for an example"
		}
		problems[i] = MappingProblem{w.Line, w.Column, w.Message}
	}
	return nil, problems
}

// schemaProblems returns one problem for each violation of the schema.
func schemaProblems(root *yaml.Node, value any) []MappingProblem {
	schema, err := compiledMappingSchema()
	if err != nil {
		return []MappingProblem{{Message: fmt.Sprintf("the embedded schema is broken: %v", err)}}
	}
	var problems []MappingProblem
	value = quoteCheck(root, value, "", &problems)
	var violated *jsonschema.ValidationError
	if err := schema.Validate(value); !errors.As(err, &violated) {
		return problems
	}
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		causes := e.Causes
		if _, choice := e.ErrorKind.(*kind.AnyOf); choice {
			causes = chosen(e)
		}
		if len(causes) == 0 {
			problems = append(problems, wordViolation(root, e)...)
		}
		for _, cause := range causes {
			walk(cause)
		}
	}
	walk(violated)
	return problems
}

// wantsNumber is the path of the key that takes a number; all others take texts.
const wantsNumber = ".csv.preamble"

// quoteCheck reports unquoted numbers and dates, and goes on with them as texts.
func quoteCheck(n *yaml.Node, value any, path string, problems *[]MappingProblem) any {
	switch v := value.(type) {
	case map[string]any:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			v[key] = quoteCheck(n.Content[i+1], v[key], path+"."+key, problems)
		}
	case []any:
		for i := range v {
			v[i] = quoteCheck(n.Content[i], v[i], path, problems)
		}
	case json.Number, string:
		switch n.ShortTag() {
		case "!!int", "!!float", "!!timestamp":
			if path == wantsNumber {
				return value
			}
			*problems = append(*problems,
				MappingProblem{n.Line, n.Column, fmt.Sprintf("%s is not a text; put it in quotes", n.Value)})
			return n.Value
		}
	}
	return value
}

// chosen narrows a failed choice to the alternative that the author meant: the one whose type fits.
func chosen(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	own := strings.Join(e.InstanceLocation, "\x00")
	fits := func(c *jsonschema.ValidationError) bool {
		var wrongType func(*jsonschema.ValidationError) bool
		wrongType = func(c *jsonschema.ValidationError) bool {
			_, is := c.ErrorKind.(*kind.Type)
			return is && strings.Join(c.InstanceLocation, "\x00") == own || slices.ContainsFunc(c.Causes, wrongType)
		}
		return !wrongType(c)
	}
	return slices.DeleteFunc(slices.Clone(e.Causes), func(c *jsonschema.ValidationError) bool { return !fits(c) })
}

var english = message.NewPrinter(language.English)

func wordViolation(root *yaml.Node, e *jsonschema.ValidationError) []MappingProblem {
	node := nodeAt(root, e.InstanceLocation)
	path := cmp.Or(strings.Join(e.InstanceLocation, "."), "the mapping")
	p := MappingProblem{Line: node.Line, Column: node.Column}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var problems []MappingProblem
		for _, name := range k.Properties {
			at := node
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == name {
					at = node.Content[i]
				}
			}
			problems = append(problems, MappingProblem{
				at.Line, at.Column,
				fmt.Sprintf("unknown key %q; remove it or correct its spelling (see https://github.com/daybook-dev/daybook/blob/main/docs/import.md)", name),
			})
		}
		return problems
	case *kind.Required:
		p.Message = fmt.Sprintf("missing key %q; add it", strings.Join(k.Missing, `", "`))
	case *kind.Type:
		p.Message = fmt.Sprintf("%s is of type %s, want %s", path, k.Got, strings.Join(k.Want, " or "))
	case *kind.AnyOf:
		p.Message = path + " has none of the forms that are allowed here (see https://github.com/daybook-dev/daybook/blob/main/docs/import.md)"
	case *kind.Pattern:
		p.Message = fmt.Sprintf("%q is not a valid name; use letters, digits and the signs _ . -, a letter first", k.Got)
	default:
		p.Message = fmt.Sprintf("%s: %s", path, e.ErrorKind.LocalizedString(english))
	}
	return []MappingProblem{p}
}

// nodeAt follows the location as far as it leads.
func nodeAt(node *yaml.Node, location []string) *yaml.Node {
	for _, step := range location {
		next := (*yaml.Node)(nil)
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					next = node.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
				next = node.Content[i]
			}
		default: // a plain value has nothing below
		}
		if next == nil {
			return node
		}
		node = next
	}
	return node
}
