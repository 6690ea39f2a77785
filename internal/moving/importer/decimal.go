package importer

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// maxDecimalLength bounds the digits of a number, so that no input makes arithmetic slow.
const maxDecimalLength = 40

// decimal is a number as the document writes it, such as "1620.00", or a percentage such as
// "21.0%". It is kept as text until the currency is known. The empty decimal is absent.
type decimal string

// UnmarshalJSON reads a string or a number.
func (d *decimal) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case bytes.Equal(b, []byte("null")):
		*d = ""
	case len(b) > 0 && b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*d = decimal(s)
	default:
		*d = decimal(b)
	}
	return nil
}

// rat returns the exact number; an absent one is zero.
func (d decimal) rat() (*big.Rat, error) {
	s := string(d)
	if s == "" {
		return new(big.Rat), nil
	}
	digits := strings.TrimPrefix(s, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if len(s) > maxDecimalLength || !allDigits(whole) || point && !allDigits(fraction) {
		return nil, invalid("%.60q is not a decimal number", s)
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, invalid("%.60q is not a decimal number", s)
	}
	return r, nil
}

// percent returns the exact fraction: 21/100 for "21.0%".
func (d decimal) percent() (*big.Rat, error) {
	text, sign := strings.CutSuffix(string(d), "%")
	r, err := decimal(text).rat()
	if err == nil && sign {
		r.Quo(r, big.NewRat(100, 1))
	}
	return r, err
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// scaled returns the number times ten to the power of digits.
func scaled(r *big.Rat, digits int) *big.Rat {
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	return new(big.Rat).Mul(r, new(big.Rat).SetInt(factor))
}

// roundHalfEven returns the nearest integer; of two equally near ones the even one.
func roundHalfEven(r *big.Rat) *big.Int {
	floor, remainder := floorRat(r)
	switch twice := remainder.Mul(remainder, big.NewRat(2, 1)).Cmp(big.NewRat(1, 1)); {
	case twice > 0, twice == 0 && floor.Bit(0) == 1:
		floor.Add(floor, big.NewInt(1))
	}
	return floor
}

// roundHalfUp returns the nearest integer; of two equally near ones the one farther from zero.
func roundHalfUp(r *big.Rat) *big.Int {
	magnitude := new(big.Rat).Abs(r)
	rounded, _ := floorRat(magnitude.Add(magnitude, big.NewRat(1, 2)))
	if r.Sign() < 0 {
		rounded.Neg(rounded)
	}
	return rounded
}

// withoutTax takes a tax that is included in an amount out of it, exactly; rate is a fraction above
// -1.
func withoutTax(amount, rate *big.Rat) *big.Rat {
	divisor := new(big.Rat).Add(rate, big.NewRat(1, 1))
	return new(big.Rat).Quo(amount, divisor)
}

// floorRat returns the greatest integer not above r, and the rest, which is at least 0 and less
// than 1.
func floorRat(r *big.Rat) (*big.Int, *big.Rat) {
	// Div is Euclidean: with a positive denominator it rounds towards minus infinity.
	floor := new(big.Int).Div(r.Num(), r.Denom())
	return floor, new(big.Rat).Sub(r, new(big.Rat).SetInt(floor))
}

// minor returns the number in minor units of a currency with so many digits. What is more precise
// than the minor unit is rounded half to even.
func (d decimal) minor(digits int) (int64, error) {
	r, err := d.rat()
	if err != nil {
		return 0, err
	}
	return toInt64(roundHalfEven(scaled(r, digits)), string(d))
}

func toInt64(i *big.Int, text string) (int64, error) {
	if !i.IsInt64() {
		return 0, invalid("%.60q is greater than 64 bits hold in minor units", text)
	}
	return i.Int64(), nil
}

// rate returns a percentage exactly: 21 for "21.0%", or for the fraction "0.21". What a rate cannot
// hold is an error.
func (d decimal) rate() (models.Rate, error) {
	r, err := d.percent()
	if err != nil {
		return models.Rate{}, err
	}
	return rateOf(r)
}

// rateOf returns a decimal fraction as a percentage, exactly: 21 for 0.21. What a rate cannot hold
// is an error.
func rateOf(fraction *big.Rat) (models.Rate, error) {
	text := scaled(fraction, 2).FloatString(maxDecimalLength) // exact: a percentage has as many digits at most
	rate, err := models.ParseRate(text)
	if err != nil {
		return rate, invalid("%w", err)
	}
	return rate, nil
}
