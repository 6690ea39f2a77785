package answers

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// Object is a JSON object of any content, kept as it was written: its names are its own.
type Object json.RawMessage

// ObjectOf encodes a value whose JSON is an object.
func ObjectOf(v any) (Object, error) {
	data, err := json.Marshal(v)
	return Object(data), err
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(data []byte) error {
	*o = append((*o)[:0], data...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (Object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
