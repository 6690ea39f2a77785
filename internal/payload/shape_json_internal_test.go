package payload

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type line struct {
	Text  string   `json:"text"`
	Small int8     `json:"small,omitempty"`
	Tags  []string `json:"tags"`
}

type letter struct {
	To     string           `json:"to"`
	Number int              `json:"number"`
	Share  float64          `json:"share,omitempty"`
	Paid   bool             `json:"paid"`
	Home   *line            `json:"home"`
	Lines  []line           `json:"lines,omitempty"`
	Counts map[string]uint8 `json:"counts,omitempty"`
	Any    any              `json:"any,omitempty"`
}

func letterSchema(tb testing.TB) *Schema {
	tb.Helper()
	s, err := SchemaFor(reflect.TypeFor[letter]())
	require.NoError(tb, err)
	return s
}

// What an application enqueues is let through without being decoded.
func TestWhatIsWrittenFitsAtOnce(t *testing.T) {
	t.Parallel()
	s := letterSchema(t)
	for _, l := range []letter{
		{To: "a", Number: -12, Lines: []line{}},
		{
			To: `a "quoted" \ text`, Number: 1, Share: 1.5e-7, Paid: true,
			Home:  &line{Text: "}", Small: -128, Tags: []string{"]", ","}},
			Lines: []line{{Tags: []string{}}, {Tags: []string{"x"}}}, Counts: map[string]uint8{"a": 255},
			Any: map[string]any{"n": []any{nil, 1, "}", true}},
		},
	} {
		raw, err := json.Marshal(l)
		require.NoError(t, err)
		assert.True(t, s.shape.fitsJSON(raw), string(raw))
	}
}

// What PostgreSQL returns is decoded without asking the schema.
func TestWhatPostgreSQLWritesFitsAtOnce(t *testing.T) {
	t.Parallel()
	s := letterSchema(t)
	for _, raw := range []string{
		`{"to": "a, b: {", "home": null, "paid": true, "number": 9007199254740993}`,
		`{"to": "a", "any": {"n": [null, 1, {"a": []}]}, "home": {"tags": ["x", "y"], "text": " "}, "paid": false, "share": 1.5, "counts": {"a": 1, "b": 2}, "number": -1}`,
	} {
		assert.True(t, s.shape.fitsJSON([]byte(raw)), raw)
		var into letter
		require.NoError(t, s.Decode([]byte(raw), &into))
	}
	assert.False(t, s.shape.fitsJSON([]byte(`{"to": "a", "home": null, "paid": true, "number": 1, "other": 1}`)))
}

// FuzzFits: what fits at once is what the schema asks for.
func FuzzFits(f *testing.F) {
	s := letterSchema(f)
	for _, raw := range []string{
		`{"to":"a","number":1,"paid":true,"home":null}`,
		`{"to":"a","number":1.0,"paid":false,"home":{"text":"b","small":127,"tags":["c"]}}`,
		`{"to":"a","number":1,"paid":true,"home":null,"lines":[{"text":"b","small":128,"tags":[]}],"counts":{"a":-1}}`,
		`{"to": "a", "home": {"tags": ["x", "y"], "text": ""}, "paid": true, "number": 1, "any": [1, {"a": 2}]}`,
		`{"to":"a","to":"b","number":1,"paid":true}`,
		`{"\u0074o":"a","number":1,"paid":true,"home":null,"any":{"a":[1,{"b":"}"}]}}`, `{}`, `[]`,
		`{"to":"a","number":9007199254740993,"paid":true,"home":null,"share":1e3,"counts":{"a":1,"a":300}}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || !s.shape.fitsJSON(raw) {
			return
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		assert.NoError(t, s.compiled.Validate(doc), string(raw))
	})
}
