package camel

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Unmarshal reads what Marshal wrote of a value of the type that into points to.
func Unmarshal(data []byte, into any, asIs ...reflect.Type) error {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	renamed, err := json.Marshal(rename(value, reflect.TypeOf(into), asIs))
	if err != nil {
		return err
	}
	return json.Unmarshal(renamed, into)
}

// rename gives the members of objects the names that the structs' tags say.
func rename(value any, t reflect.Type, asIs []reflect.Type) any {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || slices.Contains(asIs, t) || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return value
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i := range v {
				v[i] = rename(v[i], t.Elem(), asIs)
			}
		}
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			for key := range v {
				v[key] = rename(v[key], t.Elem(), asIs)
			}
		case reflect.Struct:
			return renameMembers(v, t, asIs)
		default:
		}
	}
	return value
}

// renameMembers takes a member for a field whatever the case of its letters, as encoding/json does.
func renameMembers(v map[string]any, t reflect.Type, asIs []reflect.Type) map[string]any {
	out := map[string]any{}
	fields := fieldsOf(t)
	for name, member := range v {
		i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(Name(f.name), name) })
		if i < 0 {
			out[name] = member
			continue
		}
		out[fields[i].name] = rename(member, t.FieldByIndex(fields[i].index).Type, asIs)
	}
	return out
}
