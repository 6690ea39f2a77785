package posting

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictyaml"
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

// parseSource reads YAML strictly, as settings are read, and refuses numbers that are not whole:
// only a rate has decimals.
func parseSource(data []byte) (*source, []Problem) {
	if len(data) > maxSourceBytes {
		return nil, []Problem{{Message: fmt.Sprintf("the file has %d bytes; at most %d are allowed", len(data),
			maxSourceBytes)}}
	}
	root, value, wrong := strictyaml.Parse(data)
	var problems []Problem
	for _, w := range wrong {
		if w.Message == strictyaml.Empty {
			w.Message += "; https://github.com/daybook-dev/daybook/blob/main/docs/rules.md shows what belongs in it"
		}
		problems = append(problems, Problem{Place: Place{w.Line, w.Column}, Message: w.Message})
	}
	if root == nil {
		return nil, problems
	}
	wholeNumbers(root, "", &problems)
	return &source{lines: strings.Split(string(data), "\n"), root: root, value: value}, problems
}

// wholeNumbers reports each number below a node that 64 bits do not hold as a whole one, unless it
// is a rate. key is what the node stands under.
func wholeNumbers(n *yaml.Node, key string, problems *[]Problem) {
	for i, below := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key = n.Content[i-1].Value
		}
		wholeNumbers(below, key, problems)
	}
	if n.Kind != yaml.ScalarNode {
		return
	}
	refuse := func(what string) {
		*problems = append(*problems, Problem{Place: placeOf(n), Message: n.Value + what})
	}
	switch n.ShortTag() {
	case "!!int":
		if _, err := strconv.ParseInt(n.Value, 10, 64); errors.Is(err, strconv.ErrRange) {
			refuse(" is not a plain whole number of 64 bits; put a text in quotes")
		}
	case "!!float":
		if _, err := models.ParseRate(n.Value); err != nil || key != "rate" {
			refuse(" is not a whole number; amounts are whole minor units; put a text in quotes")
		}
	}
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

// scalarAt returns the text under a key; false: there is none, which the schema has reported if it
// is an error.
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
