// Package camel writes and reads JSON whose names are in camelCase, of structs whose tags are in
// snake_case.
//
// What people and programs read as JSON, from the command line as from the HTTP API, has names in
// camelCase. What is stored, and the rows of the database, have the names of their columns, and
// their structs' tags say those. So the command line writes its results by this package. Data keeps
// its own names: the keys of maps, what writes its own JSON (json.Marshaler, such as
// json.RawMessage), and the types that the caller names.
package camel

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// Name is a name of snake_case in camelCase.
func Name(snake string) string {
	if !strings.Contains(snake, "_") {
		return snake
	}
	words := strings.Split(snake, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// Marshal writes v as encoding/json does, without escaping HTML, but for the names of structs'
// fields. Values of the types asIs keep the names that their tags say.
func Marshal(v any, asIs ...reflect.Type) ([]byte, error) {
	w := writer{asIs: asIs}
	err := w.write(reflect.ValueOf(v))
	return w.Bytes(), err
}

type writer struct {
	bytes.Buffer
	asIs []reflect.Type
}

func (w *writer) write(v reflect.Value) error {
	if !v.IsValid() {
		return w.plain(nil)
	}
	t := v.Type()
	if t.Implements(marshaler) || t.Implements(textMarshaler) || slices.Contains(w.asIs, t) {
		return w.plain(v.Interface())
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return w.plain(nil)
		}
		return w.write(v.Elem())
	case reflect.Struct:
		return w.object(v)
	case reflect.Map:
		return w.dictionary(v)
	case reflect.Slice:
		if v.IsNil() || t.Elem().Kind() == reflect.Uint8 {
			return w.plain(v.Interface())
		}
		return w.array(v)
	case reflect.Array:
		return w.array(v)
	default:
		return w.plain(v.Interface())
	}
}

// plain writes what has no names of ours in it.
func (w *writer) plain(v any) error {
	encoder := json.NewEncoder(&w.Buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	if n := w.Len(); n > 0 && w.Bytes()[n-1] == '\n' {
		w.Truncate(n - 1)
	}
	return err
}

func (w *writer) array(v reflect.Value) error {
	w.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := w.write(v.Index(i)); err != nil {
			return err
		}
	}
	w.WriteByte(']')
	return nil
}

// dictionary writes a map, whose keys are data.
func (w *writer) dictionary(v reflect.Value) error {
	if v.IsNil() || v.Type().Key().Kind() != reflect.String {
		return w.plain(v.Interface())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	w.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := w.member(key.String(), v.MapIndex(key)); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (w *writer) object(v reflect.Value) error {
	w.WriteByte('{')
	first := true
	for _, f := range fieldsOf(v.Type()) {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitted(value) { // an embedded pointer that is nil has no fields
			continue
		}
		if !first {
			w.WriteByte(',')
		}
		first = false
		if err := w.member(Name(f.name), value); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (w *writer) member(name string, v reflect.Value) error {
	if err := w.plain(name); err != nil {
		return err
	}
	w.WriteByte(':')
	return w.write(v)
}
