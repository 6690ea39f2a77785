package payload

import (
	"reflect"
	"slices"

	infer "github.com/google/jsonschema-go/jsonschema"
)

// shape is the part of a schema that decoding into its type does not check: which fields are
// required and allowed, and of what kind their values are. A payload that fits the shape and can be
// decoded is valid. One that does not fit may be valid all the same: then the schema itself
// decides, and words the error. Asking the schema takes 10 µs, which was half of a worker's time
// for a job.
type shape struct {
	// anything: everything fits; nothing: nothing does, because the schema asks for more than a shape
	// knows.
	anything, nothing bool
	// kinds are the kinds of values that fit.
	kinds    kinds
	required []string
	fields   map[string]*shape
	// others is the shape of further fields; nil: there must be none.
	others *shape
	items  *shape

	// whole: a number must be an integer; from and to bound it, when they are not nil.
	whole    bool
	from, to *float64
	// bit is the field's own among those of its object, must has those of the required ones; sorts is
	// false when there are too many fields for that.
	bit, must uint64
	sorts     bool
}

type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	number
	text
	array
	object
)

var kindOf = map[string]kinds{
	"null": null, "boolean": boolean, "number": number, "integer": number, "string": text, "array": array,
	"object": object,
}

func shapeOf(s *infer.Schema) *shape {
	if s == nil {
		return &shape{anything: true}
	}
	rest := *s
	rest.Schema, rest.Description, rest.PropertyOrder = "", "", nil
	if reflect.ValueOf(rest).IsZero() {
		return &shape{anything: true}
	}
	rest.Type, rest.Types, rest.Required, rest.Properties, rest.AdditionalProperties, rest.Items = "", nil, nil, nil, nil,
		nil
	// Decoding knows the range of a number.
	from, to := rest.Minimum, rest.Maximum
	rest.Minimum, rest.Maximum = nil, nil
	sh := &shape{
		required: s.Required, fields: map[string]*shape{}, items: shapeOf(s.Items),
		nothing: !reflect.ValueOf(rest).IsZero(),
	}
	for _, t := range append(s.Types, s.Type) {
		sh.kinds |= kindOf[t]
	}
	for name, p := range s.Properties {
		sh.fields[name] = shapeOf(p)
	}
	sh.from, sh.to, sh.whole = from, to, sh.kinds&number != 0 && !slices.Contains(append(s.Types, s.Type), "number")
	sh.numberFields()
	if more := s.AdditionalProperties; more == nil || more.Not == nil {
		sh.others = shapeOf(more)
	}
	return sh
}

// numberFields gives each field of an object a bit, so that fitsJSON can tell which were there.
func (sh *shape) numberFields() {
	n := 0
	for _, field := range sh.fields {
		if n < 64 {
			field.bit = 1 << n
		}
		n++
	}
	sh.sorts = n <= 64
	for _, name := range sh.required {
		field, known := sh.fields[name]
		if !known {
			sh.sorts = false
			return
		}
		sh.must |= field.bit
	}
}
