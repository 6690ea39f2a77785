package models_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/models"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"19": "19", "19.00": "19", "9.975": "9.975", "8.875": "8.875", "0": "0", "-0": "0", "-5.20": "-5.2", "007": "7",
		"0.000001": "0.000001", "999999999.999999": "999999999.999999", "1.5000000000000000000000": "1.5",
	} {
		r, err := models.ParseRate(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, r.String(), text)
	}
	for text, want := range map[string]string{
		"":                       "want a percentage in decimal digits",
		"19%":                    "want a percentage in decimal digits",
		"9,975":                  "want a percentage in decimal digits",
		"+19":                    "want a percentage in decimal digits",
		"1e1":                    "want a percentage in decimal digits",
		".5":                     "want a percentage in decimal digits",
		"5.":                     "want a percentage in decimal digits",
		"--5":                    "want a percentage in decimal digits",
		"NaN":                    "want a percentage in decimal digits",
		"9.9750001":              "at most 6 decimals",
		"1000000000":             "less than 1000000000",
		strings.Repeat("9", 500): "less than 1000000000",
	} {
		_, err := models.ParseRate(text)
		require.ErrorContains(t, err, want, text)
	}
}

func rates() *rapid.Generator[models.Rate] {
	return rapid.Custom(func(t *rapid.T) models.Rate {
		n := rapid.Int64Range(-999999999_999999, 999999999_999999).Draw(t, "millionths")
		r, err := models.ParseRate(new(big.Rat).SetFrac64(n, 1_000_000).FloatString(6))
		require.NoError(t, err)
		return r
	})
}

// Whatever way a rate takes through text and JSON, it is the same rate, in the shortest digits.
func TestRateSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rates().Draw(t, "rate")
		again, err := models.ParseRate(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)

		text, err := json.Marshal(models.Tax{Rate: r})
		require.NoError(t, err)
		var tax models.Tax
		require.NoError(t, json.Unmarshal(text, &tax))
		require.Equal(t, r, tax.Rate)
		require.NoError(t, json.Unmarshal([]byte(`{"rate": "`+r.String()+`"}`), &tax))
		require.Equal(t, r, tax.Rate)

		// Programs that read JSON numbers as floating point write the same digits.
		exact, ok := new(big.Rat).SetString(r.String())
		require.True(t, ok)
		nearest, _ := exact.Float64()
		written := new(big.Float).SetFloat64(nearest).Text('f', 6)
		again, err = models.ParseRate(written)
		require.NoError(t, err)
		require.Equal(t, r, again)

		other := rates().Draw(t, "other")
		second, ok := new(big.Rat).SetString(other.String())
		require.True(t, ok)
		require.Equal(t, exact.Cmp(second), r.Compare(other))
		n, d := r.Fraction()
		require.Zero(t, new(big.Rat).Mul(big.NewRat(n, d), big.NewRat(100, 1)).Cmp(exact))
	})
}

func TestRateInBasisPoints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"19": 1900, "8.25": 825, "-0.5": -50, "0": 0} {
		r := models.MustRate(text)
		n, whole := r.BasisPoints()
		assert.True(t, whole, text)
		assert.Equal(t, want, n, text)
		again, err := models.BasisPoints(n)
		require.NoError(t, err)
		assert.Equal(t, r, again, text)
	}
	_, whole := models.MustRate("9.975").BasisPoints()
	assert.False(t, whole)
	_, err := models.BasisPoints(100_000_000_000)
	require.ErrorContains(t, err, "a percentage is less than 1000000000")
}

// Old documents state basis points, new ones percent; they are one field, which is written in
// percent.
func TestLineStatesItsRateOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"kind": "item", "net": 5, "rate_bp": 1900}`:               `{"kind":"item","net":5,"rate":19}`,
		`{"kind": "item", "net": 5, "rate": 9.975}`:                 `{"kind":"item","net":5,"rate":9.975}`,
		`{"kind": "item", "net": 5, "rate": "9.9750"}`:              `{"kind":"item","net":5,"rate":9.975}`,
		`{"kind": "item", "net": 5, "rate": null, "rate_bp": 825}`:  `{"kind":"item","net":5,"rate":8.25}`,
		`{"kind": "item", "net": 5, "rate": 0.00, "rate_bp": null}`: `{"kind":"item","net":5}`,
		`{"kind": "item", "net": 5}`:                                `{"kind":"item","net":5}`,
	} {
		var l models.Line
		require.NoError(t, json.Unmarshal([]byte(text), &l), text)
		got, err := json.Marshal(l)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), text)
	}
	for text, want := range map[string]string{
		`{"rate": 19, "rate_bp": 700}`:   "states both rate and rate_bp",
		`{"rate": 0, "rate_bp": 700}`:    "states both rate and rate_bp",
		`{"rate": true}`:                 "want a percentage in decimal digits",
		`{"rate": "19 %"}`:               "want a percentage in decimal digits",
		`{"rate_bp": 9.5}`:               "rate_bp",
		`{"rate_bp": 1000000000000}`:     "less than",
		`{"rate": 0.12345678901234}`:     "at most 6 decimals",
		`{"rate": 19.00000000000000001}`: "at most 6 decimals",
	} {
		var l models.Line
		require.ErrorContains(t, json.Unmarshal([]byte(text), &l), want, text)
		var tax models.Tax
		require.ErrorContains(t, json.Unmarshal([]byte(text), &tax), want, text)
	}
}
