package httpapi

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// object is a JSON object of any content, kept as it was written.
type object json.RawMessage

// objectOf encodes a value whose JSON is an object.
func objectOf(v any) (object, error) {
	data, err := json.Marshal(v)
	return object(data), err
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(data []byte) error {
	*o = append((*o)[:0], data...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
