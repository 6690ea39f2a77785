// Package strictyaml reads what people write in YAML: mappings and settings. YAML by itself is
// generous with them. It cuts 2.9 to 2 where a whole number is wanted, reads 010 as 8 and yes as
// true, and forgets what stands after a second "---". Here each of these is an error that names its
// line. What is read is JSON, so that strictjson says whether it fits.
package strictyaml

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

	"github.com/daybook-dev/daybook/models/strictjson"
)

// Problem is one thing that is wrong with a file, with its place counted from 1; 0 is no place.
type Problem struct {
	Line, Column int
	Message      string
}

// Error is the first problem of a file.
type Error struct{ Problem }

// Error is the problem with its line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Empty is the message about a file that has no value.
const Empty = "the file is empty"

// Parse reads a file that has one value: the tree of it, with places, and what a JSON decoder would
// return of it, with json.Number for numbers. It refuses aliases, keys that are not plain names,
// the same key twice and a second document.
func Parse(source []byte) (root *yaml.Node, value any, problems []Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(document.Content) != 1:
		return nil, nil, []Problem{{1, 1, Empty}}
	case err != nil:
		return nil, nil, []Problem{yamlProblem(err)}
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, nil, []Problem{{more.Line, more.Column, "a second YAML document starts here; keep one a file"}}
	case !errors.Is(err, io.EOF):
		return nil, nil, []Problem{yamlProblem(err)}
	}
	t := &treeReader{}
	root = document.Content[0]
	value = t.value(root)
	return root, value, t.problems
}

// Unmarshal reads a file into what into points to, as strictjson.Unmarshal reads JSON: by the names
// of json tags, and durations as texts such as 30s. A file without a value leaves it as it is. The
// error is an *Error.
func Unmarshal(source []byte, into any) error {
	root, value, problems := Parse(source)
	switch {
	case len(problems) == 1 && problems[0].Message == Empty, len(problems) == 0 && value == nil:
		return nil
	case len(problems) > 0:
		return &Error{problems[0]}
	}
	if n := firstNull(root); n != nil {
		return &Error{Problem{n.Line, n.Column, "the value is missing: write one, or leave the key out"}}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	wrong, ok := errors.AsType[*strictjson.Error](strictjson.UnmarshalSettings(text, into))
	if !ok {
		return nil
	}
	at := root
	if wrong.Pointer != "" {
		at = nodeAt(root, strings.Split(wrong.Pointer[1:], "/"))
	}
	return &Error{Problem{at.Line, at.Column, wrong.Error()}}
}

// firstNull returns the first value that is missing; nil: none is.
func firstNull(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return n
	}
	for _, below := range n.Content {
		if found := firstNull(below); found != nil {
			return found
		}
	}
	return nil
}

// nodeAt follows the steps as far as they lead. A key is the place of its value's problems.
func nodeAt(node *yaml.Node, steps []string) *yaml.Node {
	for _, step := range steps {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		i := -1
		switch node.Kind {
		case yaml.MappingNode:
			for k := 0; k+1 < len(node.Content); k += 2 {
				if node.Content[k].Value == step {
					i = k + 1
				}
			}
		case yaml.SequenceNode:
			if n, err := strconv.Atoi(step); err == nil {
				i = n
			}
		default: // a plain value has nothing below
		}
		if i < 0 || i >= len(node.Content) {
			return node
		}
		node = node.Content[i]
	}
	return node
}

var yamlLine = regexp.MustCompile(`line (\d+):`)

func yamlProblem(err error) Problem {
	p := Problem{Message: "the file is not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			p.Line, p.Column = n, 1
		}
	}
	return p
}

// Value returns the value of a node of a tree that Parse had no problem with, as Parse returns that
// of the whole.
func Value(n *yaml.Node) any { return new(treeReader).value(n) }

type treeReader struct{ problems []Problem }

func (t *treeReader) refuse(n *yaml.Node, format string, args ...any) {
	t.problems = append(t.problems, Problem{n.Line, n.Column, fmt.Sprintf(format, args...)})
}

// plainNumber is a number as JSON writes it.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)

func (t *treeReader) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, taken := m[key.Value]; key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				t.refuse(key, "a key must be a plain name")
			} else if taken {
				t.refuse(key, "the key %q stands here a second time; remove one", key.Value)
			}
			m[key.Value] = t.value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		s := make([]any, len(n.Content))
		for i, c := range n.Content {
			s[i] = t.value(c)
		}
		return s
	case yaml.AliasNode:
		t.refuse(n, "YAML aliases are not allowed; write the value out")
		return nil
	default: // a plain value
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if !plainNumber.MatchString(n.Value) {
			t.refuse(n, "%s is not a plain number; write it in decimal digits, or put a text in quotes", n.Value)
			return json.Number("0")
		}
		return json.Number(n.Value)
	}
	return n.Value
}
