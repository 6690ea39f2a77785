package posting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
)

// source is a file as a tree whose nodes have places.
type source struct {
	lines []string
	root  *yaml.Node
	value any // the same tree as JSON values, for the schema
}

// scalar is one text of the file, with what is needed to point into it.
type scalar struct {
	value string
	place Place
	// block is true for a text that starts on the line after its place, in columns from indent on.
	block  bool
	indent int
}

// at returns the place of a line (from 1) and column (from 0) of the text within the file.
func (s scalar) at(line, column int) Place {
	switch {
	case line < 1 || column < 0:
		return s.place
	case s.block:
		return Place{s.place.Line + line, s.indent + column + 1}
	case line == 1:
		return Place{s.place.Line, s.place.Column + s.indent + column}
	default: // a text that was wrapped: its line is known, its indentation is not
		return Place{s.place.Line + line - 1, column + 1}
	}
}

// parseSource reads YAML. It refuses what neither a rule set nor a case needs: several documents, aliases,
// duplicate keys.
func parseSource(data []byte) (*source, []Problem) {
	if len(data) > maxSourceBytes {
		return nil, []Problem{{Message: fmt.Sprintf("the file has %d bytes; at most %d are allowed", len(data), maxSourceBytes)}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, []Problem{{Place: Place{1, 1}, Message: "the file is empty; docs/rules.md shows what belongs in it"}}
		}
		return nil, []Problem{yamlProblem(err)}
	}
	if len(document.Content) != 1 {
		return nil, []Problem{{Place: Place{1, 1}, Message: "the file is empty; docs/rules.md shows what belongs in it"}}
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, []Problem{yamlProblem(err)}
		}
		return nil, []Problem{{Place: placeOf(&more), Message: "a second YAML document starts here; keep one a file"}}
	}
	src := &source{lines: strings.Split(string(data), "\n"), root: document.Content[0]}
	var problems []Problem
	src.value = jsonValue(src.root, &problems)
	return src, problems
}

var yamlLine = regexp.MustCompile(`line (\d+):`)

func yamlProblem(err error) Problem {
	p := Problem{Message: "the file is not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			p.Place = Place{n, 1}
		}
	}
	return p
}

// jsonValue turns a node into what a JSON decoder would give.
func jsonValue(n *yaml.Node, problems *[]Problem) any {
	refuse := func(n *yaml.Node, format string, args ...any) {
		*problems = append(*problems, Problem{Place: placeOf(n), Message: fmt.Sprintf(format, args...)})
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				refuse(key, "a key must be a plain name")
				continue
			}
			if _, ok := m[key.Value]; ok {
				refuse(key, "the key %q stands here a second time; remove one", key.Value)
			}
			value := n.Content[i+1]
			if _, err := models.ParseRate(value.Value); err == nil && key.Value == "rate" && value.ShortTag() == "!!float" {
				m[key.Value] = json.Number(value.Value) // a rate has decimals, and keeps them all
				continue
			}
			m[key.Value] = jsonValue(value, problems)
		}
		return m
	case yaml.SequenceNode:
		s := make([]any, len(n.Content))
		for i, c := range n.Content {
			s[i] = jsonValue(c, problems)
		}
		return s
	case yaml.AliasNode:
		refuse(n, "YAML aliases are not allowed; write it out (to share a rule's lines use \"like\")")
		return nil
	default: // a plain value
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return i
		}
		refuse(n, "%s is not a plain whole number; write it in decimal digits, or put a text in quotes", n.Value)
		return int64(0)
	case "!!float":
		refuse(n, "%s is not a whole number; amounts are whole minor units; put a text in quotes", n.Value)
		return int64(0)
	}
	return n.Value
}

// child returns the value of a mapping's key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// keyNode returns the key itself, or the mapping if it has no such key.
func keyNode(n *yaml.Node, key string) *yaml.Node {
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i]
			}
		}
	}
	return n
}

// items returns the elements of a sequence; none of anything else.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func placeOf(n *yaml.Node) Place {
	if n == nil {
		return Place{}
	}
	return Place{n.Line, n.Column}
}

// scalarAt returns the text under a key; false: there is none, which the schema has reported if it is an error.
func (src *source) scalarAt(n *yaml.Node, key string) (scalar, bool) {
	v := child(n, key)
	if v == nil || v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" {
		return scalar{}, false
	}
	s := scalar{value: v.Value, place: placeOf(v)}
	switch {
	case v.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		s.indent = 1
	case v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		s.block = true
		if v.Line >= 0 && v.Line < len(src.lines) {
			first := src.lines[v.Line] // the line after the node's own: Line counts from 1
			s.indent = len(first) - len(strings.TrimLeft(first, " "))
		}
	}
	return s, true
}

// textAt returns the text under a key, empty if there is none.
func (src *source) textAt(n *yaml.Node, key string) string {
	s, _ := src.scalarAt(n, key)
	return s.value
}
