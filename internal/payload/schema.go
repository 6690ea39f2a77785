package payload

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	infer "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Schema is the JSON Schema of a payload's Go type.
type Schema struct {
	json     []byte
	compiled *jsonschema.Schema
	shape    *shape
	// checks is the payload's type if that is a Checker, and nil otherwise.
	checks reflect.Type
}

// Checker is a payload that knows what is wrong with it that no schema says, such as that one of
// two fields is required. The error names the field.
type Checker interface{ Check() error }

// cache holds a Schema, or the error instead, for each type that was asked for.
var cache sync.Map

// SchemaFor returns the schema of a payload's type, which is a struct or a pointer to one. Fields
// are named by their JSON tags; those without omitempty or omitzero are required; others than the
// struct's are refused. A tag `jsonschema:"…"` describes a field. A type that writes its own JSON
// may be anything, one that writes its own text is a string.
//
// It fails on what no schema can say: a type that contains itself, a channel or function, an
// embedded struct with a name, and the JSON option "string".
func SchemaFor(t reflect.Type) (*Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v, ok := cache.Load(t); ok {
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v.(*Schema), nil
	}
	s, err := derive(t)
	if err != nil {
		err = fmt.Errorf("no JSON Schema can be derived from the payload type %s: %w", t, err)
		cache.Store(t, err)
		return nil, err
	}
	cache.Store(t, s)
	return s, nil
}

// JSON is the schema as JSON (draft 2020-12).
func (s *Schema) JSON() []byte { return slices.Clone(s.json) }

// Decode reads a payload into a value of the schema's type, or refuses it as Validate does.
func (s *Schema) Decode(raw []byte, into any) error {
	if s.shape.fitsJSON(raw) && json.Unmarshal(raw, into) == nil {
		return nil
	}
	if err := s.validate(raw); err != nil {
		return err
	}
	// The schema lets more through than the type can hold: 1.0 for an integer, a text that is no
	// time.
	err := json.Unmarshal(raw, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid("/"+strings.ReplaceAll(wrong.Field, ".", "/"), "it does not fit a Go "+wrong.Type.String())
	}
	if err != nil {
		return invalid("", err.Error())
	}
	return nil
}

// Validate refuses a payload that is not what the schema asks for, or that its Checker refuses. The
// error is an *Error.
func (s *Schema) Validate(raw []byte) error {
	if err := s.validate(raw); err != nil || s.checks == nil {
		return err
	}
	value := reflect.New(s.checks).Interface()
	if json.Unmarshal(raw, value) == nil { // otherwise Decode says so
		if err := value.(Checker).Check(); err != nil {
			return invalid("", err.Error())
		}
	}
	return nil
}

func (s *Schema) validate(raw []byte) error {
	if s.shape.fitsJSON(raw) && json.Valid(raw) {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return invalid("", "it is not valid JSON")
	}
	err = s.compiled.Validate(doc)
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return explain(v)
	}
	return err
}

// explain names the first field that is wrong, by its place, and what it should be; the value
// itself may be a secret. Fields has all of them.
func explain(v *jsonschema.ValidationError) *Error {
	wrong := leaves(v, nil)
	slices.SortStableFunc(wrong, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	first := wrong[0]
	e := invalid(pointer(first.InstanceLocation...), says(first.ErrorKind))
	for _, w := range wrong {
		place := pointer(w.InstanceLocation...)
		add := func(names []string, message string) {
			slices.Sort(names)
			for _, name := range names {
				e.Fields = append(e.Fields, FieldError{place + pointer(name), message})
			}
		}
		switch k := w.ErrorKind.(type) {
		case *kind.AdditionalProperties:
			add(k.Properties, "the schema has no such field")
		case *kind.Required:
			add(k.Missing, "it is missing")
		default:
			e.Fields = append(e.Fields, FieldError{place, says(k)})
		}
	}
	return e
}

// leaves are the errors that have no causes.
func leaves(v *jsonschema.ValidationError, found []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(v.Causes) == 0 {
		return append(found, v)
	}
	for _, cause := range v.Causes {
		found = leaves(cause, found)
	}
	return found
}

// pointer is a JSON pointer to a place.
func pointer(parts ...string) (out string) {
	for _, part := range parts {
		out += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	return out
}

// says is what a schema asks for that a value is not.
func says(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		return "unknown field " + quoted(k.Properties)
	case *kind.Required:
		return "missing field " + quoted(k.Missing)
	case *kind.Type:
		return fmt.Sprintf("it is %s and should be %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Minimum:
		return "it should be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "it should be at most " + k.Want.RatString()
	default:
		return "it is not what the schema asks for (" + strings.Join(k.KeywordPath(), "/") + ")"
	}
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}

// anything is a schema for what writes its own JSON.
func anything() *infer.Schema {
	return &infer.Schema{Types: []string{"null", "boolean", "object", "array", "number", "string"}}
}

func derive(t reflect.Type) (*Schema, error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is no struct")
	}
	known := map[reflect.Type]*infer.Schema{}
	if err := special(t, known, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	// A payload that writes its own JSON is an object all the same.
	s := &infer.Schema{Type: "object"}
	if _, own := known[t]; !own {
		var err error
		if s, err = infer.ForType(t, &infer.ForOptions{TypeSchemas: known}); err != nil {
			return nil, err
		}
		nullable(s)
		s.Type, s.Types = "object", nil
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("payload.json", doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile("payload.json")
	out := &Schema{json: raw, compiled: compiled, shape: shapeOf(s)}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[Checker]()) {
		out.checks = t
	}
	return out, err
}

// nullable lets maps be null, as encoding/json writes a nil one.
func nullable(s *infer.Schema) {
	if s == nil {
		return
	}
	if s.Type == "object" && s.Properties == nil && s.AdditionalProperties != nil {
		s.Type, s.Types = "", []string{"null", "object"}
	}
	for _, p := range s.Properties {
		nullable(p)
	}
	nullable(s.Items)
	nullable(s.AdditionalProperties)
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// special collects the schemas of types below t that their fields do not say.
func special(t reflect.Type, known map[reflect.Type]*infer.Schema, seen map[reflect.Type]bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch {
	case t == reflect.TypeFor[time.Time]():
		known[t] = &infer.Schema{Type: "string"}
		return nil
	case t == reflect.TypeFor[json.Number]():
		known[t] = &infer.Schema{Type: "number"}
		return nil
	case t.Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler):
		known[t] = anything()
		return nil
	case t.Implements(textMarshaler) || reflect.PointerTo(t).Implements(textMarshaler):
		known[t] = &infer.Schema{Type: "string"}
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			known[t] = &infer.Schema{Types: []string{"null", "string"}}
			return nil
		}
		return special(t.Elem(), known, seen)
	case reflect.Array, reflect.Map:
		return special(t.Elem(), known, seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if err := specialField(f, known, seen); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
	default:
	}
	return nil
}

func specialField(f reflect.StructField, known map[reflect.Type]*infer.Schema, seen map[reflect.Type]bool) error {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return nil
	}
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case f.Anonymous && name != "":
		return errors.New("an embedded struct cannot have a name of its own: give the field a name")
	case slices.Contains(strings.Split(options, ","), "string"):
		return errors.New(`the JSON option "string" is not supported: use a string`)
	}
	return special(f.Type, known, seen)
}
