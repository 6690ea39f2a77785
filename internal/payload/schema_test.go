package payload_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/models"
)

type address struct {
	Street string `json:"street"`
	Number int8   `json:"number,omitempty"`
}

type base struct {
	Tenant string `json:"tenant,omitempty"`
}

type mail struct {
	base

	To      string            `json:"to" jsonschema:"who gets it"`
	Copies  int               `json:"copies"`
	Rate    float64           `json:"rate"`
	Urgent  bool              `json:"urgent"`
	Lines   []address         `json:"lines"`
	Home    *address          `json:"home"`
	Headers map[string]string `json:"headers"`
	Any     any               `json:"any"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	File    []byte            `json:"file"`
	At      time.Time         `json:"at"`
	Day     models.Date       `json:"day,omitzero"`
	Total   json.Number       `json:"total,omitempty"`
	Hidden  string            `json:"-"`
	private string
}

func schemaOf[T any](t *testing.T) *payload.Schema {
	t.Helper()
	s, err := payload.SchemaFor(reflect.TypeFor[T]())
	require.NoError(t, err)
	return s
}

// Whatever Go writes of a type is what its schema asks for.
func TestWhatIsWrittenIsValid(t *testing.T) {
	t.Parallel()
	s := schemaOf[mail](t)
	for _, m := range []mail{
		{},
		{
			To: "a", Copies: -1, Rate: 1, Lines: []address{{Street: "b", Number: 127}}, Home: &address{},
			Headers: map[string]string{"a": "b"},
			Any:     []int{1}, Raw: json.RawMessage(`[true]`), File: []byte("x"), At: time.Now(),
			Day: models.NewDate(2026, 3, 14), Total: "1.50", private: "p",
		},
	} {
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		assert.NoError(t, s.Validate(raw), string(raw))
	}
	pointer, err := payload.SchemaFor(reflect.TypeFor[*mail]())
	require.NoError(t, err)
	assert.Same(t, s, pointer, "one schema a type")
	var doc map[string]any
	require.NoError(t, json.Unmarshal(s.JSON(), &doc))
	assert.Equal(t, "object", doc["type"])
	assert.Equal(t, "who gets it", doc["properties"].(map[string]any)["to"].(map[string]any)["description"])
}

// Errors name the field and what it should be, never the value.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	type letter struct {
		To    string            `json:"to"`
		Lines []address         `json:"lines,omitempty"`
		Home  *address          `json:"home,omitempty"`
		More  map[string]int    `json:"more,omitempty"`
		Odd   map[string]string `json:"a/b~c,omitempty"`
	}
	s := schemaOf[letter](t)
	for raw, want := range map[string]string{
		`{}`:                                    `payload: missing field "to"`,
		`{"to":"a","too":"secret","also":1}`:    `payload: unknown field "also", "too"`,
		`{"TO":"secret","to":"a"}`:              `payload: unknown field "TO"`,
		`{"to":12345}`:                          `payload field /to: it is number and should be string`,
		`{"to":null}`:                           `payload field /to: it is null and should be string`,
		`{"to":"a","lines":[{"street":12345}]}`: `payload field /lines/0/street: it is number and should be string`,
		`{"to":"a","lines":[{"street":"s","number":128}]}`: `payload field /lines/0/number: it should be at most 127`,
		`{"to":"a","lines":[{"street":"s","number":1.5}]}`: `payload field /lines/0/number: it is number and should be integer`,
		`{"to":"a","lines":[{"street":"s","secret":1}]}`:   `payload field /lines/0: unknown field "secret"`,
		`{"to":"a","home":"secret"}`:                       `payload field /home: it is string and should be null or object`,
		`{"to":"a","more":{"x":"secret"}}`:                 `payload field /more/x: it is string and should be integer`,
		`{"to":"a","a/b~c":{"x":1}}`:                       `payload field /a~1b~0c/x: it is number and should be string`,
		`[]`:                                               `payload: it is array and should be object`,
		`{`:                                                `payload: it is not valid JSON`,
	} {
		err := s.Validate([]byte(raw))
		assert.ErrorIs(t, err, models.ErrPayloadInvalid, raw)
		assert.EqualError(t, err, want, raw)
		assert.Equal(t, err, s.Decode([]byte(raw), new(letter)), raw)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	type letter struct {
		To    string    `json:"to"`
		Pages uint8     `json:"pages,omitempty"`
		Lines []address `json:"lines,omitempty"`
		At    time.Time `json:"at,omitzero"`
	}
	s := schemaOf[letter](t)
	var got letter
	require.NoError(t, s.Decode([]byte(`{"to": "a", "pages": 255, "lines": [{"street": "s", "number": -128}]}`), &got))
	assert.Equal(t, letter{To: "a", Pages: 255, Lines: []address{{Street: "s", Number: -128}}}, got)
	for raw, want := range map[string]string{
		`{"to":"a","pages":256}`: `payload field /pages: it should be at most 255`,
		`{"to":"a","pages":-1}`:  `payload field /pages: it should be at least 0`,
		`{"to":"a","pages":0.5}`: `payload field /pages: it is number and should be integer`,
		`{"to":"a","pages":7.0}`: `payload field /pages: it does not fit a Go uint8`,
		`{"to":"a","at":"noon"}`: `payload: parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"`,
	} {
		err := s.Decode([]byte(raw), new(letter))
		assert.ErrorIs(t, err, models.ErrPayloadInvalid, raw)
		assert.EqualError(t, err, want, raw)
	}
}

// FuzzDecode: what Decode takes, Validate takes.
func FuzzDecode(f *testing.F) {
	s, err := payload.SchemaFor(reflect.TypeFor[mail]())
	require.NoError(f, err)
	for _, m := range []mail{
		{},
		{
			To: "a", Lines: []address{{Street: "b", Number: 127}}, Home: &address{}, Headers: map[string]string{"a": "b"},
			File: []byte("x"),
		},
	} {
		raw, err := json.Marshal(m)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Add([]byte(`{"to":"a","TO":"b","lines":[null,{"street":null}],"headers":{"a":null}}`))
	f.Add([]byte(`{"to":null,"copies":1.5,"rate":"1","any":[{}],"raw":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s.Decode(raw, new(mail)) == nil {
			assert.NoError(t, s.Validate(raw), string(raw))
		}
	})
}

// A type that writes its own JSON is an object of whatever it likes.
type free struct{ fields map[string]any }

func (f free) MarshalJSON() ([]byte, error) { return json.Marshal(f.fields) }

func TestAPayloadThatWritesItsOwnJSON(t *testing.T) {
	t.Parallel()
	s := schemaOf[free](t)
	assert.NoError(t, s.Validate([]byte(`{"a":{"b":1}}`)))
	assert.Error(t, s.Validate([]byte(`[]`)))
}

type tree struct {
	Left *tree `json:"left"`
}

type named struct {
	address `json:"home"`
}

type stringed struct {
	N int `json:"n,string"`
}

// What no schema can say is an error that names the field, the second time as well.
func TestTypesWithoutASchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[int](), "it is no struct"},
		{reflect.TypeFor[map[string]any](), "it is no struct"},
		{reflect.TypeFor[tree](), "cycle"},
		{reflect.TypeFor[named](), "field address: an embedded struct"},
		{reflect.TypeFor[stringed](), `field N: the JSON option "string"`},
		{reflect.TypeFor[struct{ C chan int }](), "unsupported"},
	} {
		for range 2 {
			_, err := payload.SchemaFor(c.typ)
			assert.ErrorContains(t, err, c.want, c.typ.String())
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := payload.SchemaFor(reflect.TypeFor[mail]())
	require.NoError(b, err)
	raw, err := json.Marshal(mail{To: "a", Lines: []address{{Street: "b"}}})
	require.NoError(b, err)
	b.Run("schema", func(b *testing.B) {
		for b.Loop() {
			_ = s.Validate(raw)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			_ = s.Decode(raw, new(mail))
		}
	})
	b.Run("limits", func(b *testing.B) {
		for b.Loop() {
			_ = payload.Check(raw)
		}
	})
}

// All that the schema refuses is named, a field each, the first one in the message.
func TestEveryFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	err := schemaOf[address](t).Validate([]byte(`{"number": "x", "zip": 1, "a/b": 2}`))
	var wrong *payload.Error
	require.ErrorAs(t, err, &wrong)
	assert.ElementsMatch(t, []payload.FieldError{
		{Field: "/street", Message: "it is missing"},
		{Field: "/zip", Message: "the schema has no such field"},
		{Field: "/a~1b", Message: "the schema has no such field"},
		{Field: "/number", Message: "it is string and should be integer"},
	}, wrong.Fields)
	assert.Empty(t, wrong.Field)

	err = schemaOf[mail](t).Validate([]byte(`{"to": 1, "lines": [{"street": 2}]}`))
	require.ErrorAs(t, err, &wrong)
	assert.Contains(t, wrong.Fields, payload.FieldError{Field: "/lines/0/street", Message: "it is number and should be string"})
	assert.Contains(t, wrong.Fields, payload.FieldError{Field: "/to", Message: "it is number and should be string"})
	assert.Contains(t, wrong.Fields, payload.FieldError{Field: "/copies", Message: "it is missing"})
}
