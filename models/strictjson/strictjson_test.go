package strictjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
)

// TestContentIsReadAsEncodingJSONReadsIt: what encoding/json makes of a content, which is how it is
// imported and sent, is what is posted, and what it refuses is refused.
func TestContentIsReadAsEncodingJSONReadsIt(t *testing.T) {
	for _, text := range []string{
		`{"lines": [{"kind": "product", "net": 12, "rate_bp": 1900}, {"kind": "discount", "net": -9223372036854775808}], "taxes": [{"amount": 384, "retained": true}]}`,
		`{"number": "Ж\"\\\u0001😀", "attributes": {"a": "b", "A": "", "c": null}, "settled": {"amount": 1, "currency": "JPY"}}`,
		`{"lines": null, "taxes": [], "settled": null, "total": null, "number": null, "attributes": {}}`,
		`{"lines": [{"kind": "` + strings.Repeat("x", 100_000) + `", "net": 7}]}`,
		`{"lines": [null]}`,
		`{}`,
		`null`,
		`12`,
		`"text"`,
		`[]`,
		`{"line": []}`,
		`{"lines": [{"rate": 9.975}, {"rate": "8.875"}], "taxes": [{"rate": 19.00}, {"rate_bp": 700}]}`,
		`{"lines": [{"rate": 19, "rate_bp": 1900}]}`,
		`{"lines": [{"rate": 9.9750001}]}`,
		`{"taxes": [{"rate": "19%"}]}`,
		`{"_total": 7}`,
		`{"total-": 7}`,
		`{"lines": [{"net": "twelve"}]}`,
		`{"lines": [{"net": 12.5}]}`,
		`{"lines": [{"net": 12.0}]}`,
		`{"lines": [{"net": 9223372036854775808}]}`,
		`{"lines": {"net": 12}}`,
		`{"number": 12}`,
		`{"attributes": {"a": 1}}`,
		`{"taxes": [{"retained": "yes"}]}`,
	} {
		var want models.Content
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		refused := decoder.Decode(&want)

		row := []byte(text)
		var got models.Content
		err := strictjson.Unmarshal(row, &got)
		copy(row, bytes.Repeat([]byte("?"), len(row))) // as the next row is written over it
		if refused != nil {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestContentThatIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"amuont": 12}`:                   `there is no field "amuont": correct its name, or put further values under attributes`,
		`{"lines": [{"ratebp": 1900}]}`:    `there is no field "ratebp": correct its name, or put further values under attributes`,
		`{"taxes": [{"rate-bp": 1900}]}`:   `there is no field "rate-bp": correct its name, or put further values under attributes`,
		`{"lines": [{}, {"rate": "19%"}]}`: `/lines/1/rate: rate "19%": want a percentage in decimal digits, such as 19 or 9.975`,
		`{"lines": [{"rate": 19, "rate_bp": 1900}]}`: `/lines/0: it states both rate and rate_bp: remove rate_bp, ` +
			`which is the rate in hundredths of a percent`,
		`{"lines": [{}, {"neto": 12}]}`:                `there is no field "neto": correct its name, or put further values under attributes`,
		`{"Total": 1}`:                                 `there is no field "Total": write "total"`,
		`{"total": 1, "Total": 2}`:                     `there is no field "Total": write "total"`,
		`{"lines": [{"Net": 1}]}`:                      `there is no field "Net": write "net"`,
		`{"taxes": [{}, {"RATE_BP": 700}]}`:            `there is no field "RATE_BP": write "rate_bp"`,
		`{"journal": {"entries": [{"Account": "1"}]}}`: `there is no field "Account": write "account"`,
		`{"settled": {"Amount": 1}}`:                   `there is no field "Amount": write "amount"`,
		`{"RefersTo": ["a"]}`:                          `there is no field "RefersTo": correct its name, or put further values under attributes`,
		`{"total": 1, "total": 2}`:                     `the field "total" is there twice, capital and small letters being the same: remove one of them`,
		`{"total": 1}{`:                                `it is no JSON from byte 12 on: invalid character '{' after top-level value`,
		`{"total": `:                                   `it is no JSON from byte 10 on: unexpected EOF`,
		"{\"number\": \"\xfc\"}":                       `it is no JSON from byte 12 on: invalid UTF-8`,
		`{"lines": [{}, {"net": "twelve"}]}`:           `/lines/1/net is a text, and a whole number that fits into 64 bits is wanted`,
		`{"lines": [{"net": 12.5}]}`:                   `/lines/0/net is 12.5, and a whole number that fits into 64 bits is wanted`,
		`{"total": 9223372036854775808}`:               `/total is 9223372036854775808, and a whole number that fits into 64 bits is wanted`,
		`{"number": 12}`:                               `/number is a number, and a text is wanted`,
		`{"number": true}`:                             `/number is true, and a text is wanted`,
		`{"lines": {"net": 12}}`:                       `/lines is an object, and a list is wanted`,
		`{"settled": [1]}`:                             `/settled is a list, and an object is wanted`,
		`{"attributes": "a"}`:                          `/attributes is a text, and an object is wanted`,
		`{"taxes": [{"retained": "yes"}]}`:             `/taxes/0/retained is a text, and true or false is wanted`,
		`"text"`:                                       `it is a text, and an object is wanted`,
		`12`:                                           `it is a number, and an object is wanted`,
	} {
		var c models.Content
		assert.EqualError(t, strictjson.Unmarshal([]byte(text), &c), want, text)
	}
}

// Lines without an amount are no lines of zero.
func TestLinesWithoutAnAmountAreRefused(t *testing.T) {
	for text, zero := range map[string]bool{
		`{"lines": [{"kind": "item", "net": 0}, {"kind": "shipping"}]}`: true,
		`{"taxes": [{"category": "VAT", "amount": 0}]}`:                 true,
		`{"zero": true, "lines": [{"kind": "item"}]}`:                   true,
		`{"lines": [{"kind": "item"}, {"kind": "stock", "cost": 5}]}`:   false,
		`{"lines": []}`: false,
	} {
		var c models.Content
		require.NoError(t, strictjson.Document([]byte(text), &c, &c), text)
		assert.Equal(t, zero, c.Zero, text)
	}
	for _, text := range []string{`{"lines": [{"kind": "item"}]}`, `{"taxes": [{"category": "VAT", "rate": 19}]}`} {
		var c models.Content
		require.EqualError(t, strictjson.Document([]byte(text), &c, &c),
			"it has lines or taxes, and no amount: state the amounts, as 0 where they are zero")
	}
}
