package posting

import (
	"bytes"
	"cmp"
	_ "embed"
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
)

//go:embed schema.json
var ruleSetSchemaSource []byte

//go:embed cases.schema.json
var casesSchemaSource []byte

// Schema returns the JSON Schema (draft 2020-12) of a rule set file, for editors and other tools.
// Compile checks more than the schema can express: names, types and expressions.
func Schema() []byte { return bytes.Clone(ruleSetSchemaSource) }

// CaseSchema returns the JSON Schema (draft 2020-12) of a file of test cases, for editors and other
// tools. ParseCases checks more than the schema can express.
func CaseSchema() []byte { return bytes.Clone(casesSchemaSource) }

// schema is one of the embedded schemas, compiled when it is first used.
type schema struct {
	compiled func() (*jsonschema.Schema, error)
}

var (
	ruleSetSchema = newSchema(ruleSetSchemaSource)
	casesSchema   = newSchema(casesSchemaSource)
)

func newSchema(source []byte) schema {
	return schema{sync.OnceValues(func() (*jsonschema.Schema, error) {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema.json", document); err != nil {
			return nil, err
		}
		return c.Compile("schema.json")
	})}
}

var english = message.NewPrinter(language.English)

// check compares the file's structure with the schema and returns one problem for each violation.
func (s schema) check(src *source) []Problem {
	compiled, err := s.compiled()
	if err != nil {
		return []Problem{{Message: fmt.Sprintf("the embedded schema is broken: %v", err)}}
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(src.value); !errors.As(err, &invalid) {
		return nil
	}
	var problems []Problem
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			problems = append(problems, schemaProblems(src.root, e)...)
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	return problems
}

// schemaProblems words one violation for the author of a rule set.
func schemaProblems(root *yaml.Node, e *jsonschema.ValidationError) []Problem {
	node := nodeAt(root, e.InstanceLocation)
	p := Problem{Place: placeOf(node)}
	p.Rule, p.RuleLine = idsAt(root, e.InstanceLocation)
	path := cmp.Or(strings.Join(e.InstanceLocation, "."), "the rule set")
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var problems []Problem
		for _, name := range k.Properties {
			p.Place = placeOf(keyNode(node, name))
			p.Message = fmt.Sprintf("unknown key %q; remove it or correct its spelling (see https://github.com/daybook-dev/daybook/blob/main/docs/rules.md)", name)
			problems = append(problems, p)
		}
		return problems
	case *kind.Required:
		p.Message = fmt.Sprintf("missing key %s; add it", quoted(k.Missing))
	case *kind.Type:
		p.Message = fmt.Sprintf("%s is of type %s, want %s", path, k.Got, strings.Join(k.Want, " or "))
		if slices.Contains(k.Want, "string") && k.Got == "number" {
			p.Message += "; put it in quotes"
		} else if hint := constantHints[last(e.InstanceLocation)]; hint != "" {
			p.Message += "; " + hint
		}
	case *kind.Enum:
		p.Message = fmt.Sprintf("%s is %q, want %s", path, fmt.Sprint(k.Got), oneOf(k.Want))
		if hint := constantHints[last(e.InstanceLocation)]; hint != "" {
			p.Message += "; " + hint
		}
	case *kind.Pattern:
		p.Message = fmt.Sprintf("%q is not a valid name; use letters, digits and the signs the pattern %s allows", k.Got,
			k.Want)
		if hint := constantHints[last(e.InstanceLocation)]; hint != "" {
			p.Message += "; " + hint
		}
	default:
		p.Message = fmt.Sprintf("%s: %s", path, e.ErrorKind.LocalizedString(english))
	}
	return []Problem{p}
}

// constantHints say for keys that take a constant what does what an expression there would.
var constantHints = map[string]string{
	"side":      "it is no expression: a negative amount stands on the other side by itself",
	"each":      "it is no expression: if leaves elements out",
	"negate":    "it is no expression: two rules with different conditions can be like one another",
	"max_minor": "it is no expression",
	"map":       "it takes the name of a map: the conditions stand in its rows",
}

func last(location []string) string {
	if len(location) == 0 {
		return ""
	}
	return location[len(location)-1]
}

func oneOf(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, " or ")
}

// idsAt returns the ids of the rule and of the rule line that a location lies in, as far as it
// does.
func idsAt(root *yaml.Node, location []string) (rule, line string) {
	if len(location) < 2 || location[0] != "rules" {
		return "", ""
	}
	rule = textAt(root, append(location[:2:2], "id"))
	if len(location) >= 4 && location[2] == "lines" {
		line = textAt(root, append(location[:4:4], "id"))
	}
	return rule, line
}

func textAt(root *yaml.Node, location []string) string {
	if n := nodeAt(root, location); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// nodeAt follows the location as far as it leads.
func nodeAt(node *yaml.Node, location []string) *yaml.Node {
	for _, step := range location {
		next := child(node, step)
		if next == nil && node != nil && node.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
				next = node.Content[i]
			}
		}
		if next == nil {
			return node
		}
		node = next
	}
	return node
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}
