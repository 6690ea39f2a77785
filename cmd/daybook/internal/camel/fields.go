package camel

import (
	"reflect"
	"slices"
	"strings"
)

// field is a member of a struct's JSON, as the struct's tag says.
type field struct {
	name                string
	index               []int
	omitempty, omitzero bool
}

// fieldsOf are the members of a struct in their order, those of embedded structs in their place. Of
// two members with one name the outer one counts.
func fieldsOf(t reflect.Type) []field {
	depth := map[string]int{}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if name == "-" || f.Anonymous && !tagged && inner.Kind() == reflect.Struct || !f.IsExported() ||
			hidden(t, f.Index) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if d, taken := depth[name]; taken && d <= len(f.Index) {
			continue
		}
		fields = slices.DeleteFunc(fields, func(g field) bool { return g.name == name })
		depth[name] = len(f.Index)
		fields = append(fields, field{
			name: name, index: f.Index, omitempty: strings.Contains(options, "omitempty"),
			omitzero: strings.Contains(options, "omitzero"),
		})
	}
	return fields
}

// hidden reports whether a promoted field belongs to an embedded struct that has a name of its own
// in the JSON, or none.
func hidden(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		if _, tagged := t.FieldByIndex(index[:i]).Tag.Lookup("json"); tagged {
			return true
		}
	}
	return false
}

// omitted says whether the field's tag leaves the value out.
func (f *field) omitted(v reflect.Value) bool {
	if f.omitzero {
		if z, ok := reflect.TypeAssert[interface{ IsZero() bool }](v); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			return z.IsZero()
		}
		return v.IsZero()
	}
	if !f.omitempty {
		return false
	}
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}
