package importer

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
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

// exactNumber is a decimal number: its units divided by ten to the power of its places.
type exactNumber struct {
	units  *big.Int
	places int
}

// exact returns the number; an absent one is zero.
func (d decimal) exact() (exactNumber, error) {
	s := string(d)
	if s == "" {
		return exactNumber{units: new(big.Int)}, nil
	}
	digits := strings.TrimPrefix(s, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if len(s) > maxDecimalLength || !allDigits(whole) || point && !allDigits(fraction) {
		return exactNumber{}, invalid("%.60q is not a decimal number", s)
	}
	if point {
		s = s[:len(s)-len(fraction)-1] + fraction
	}
	if small, err := strconv.ParseInt(s, 10, 64); err == nil {
		return exactNumber{big.NewInt(small), len(fraction)}, nil
	}
	units, _ := new(big.Int).SetString(s, 10)
	return exactNumber{units, len(fraction)}, nil
}

// times returns the product of two numbers that were read.
func (e exactNumber) times(f exactNumber) exactNumber {
	return exactNumber{new(big.Int).Mul(e.units, f.units), e.places + f.places}
}

// minor returns the nearest integer to the number in minor units of a currency with so many digits;
// of two equally near ones the even one.
func (e exactNumber) minor(digits int) *big.Int {
	if digits >= e.places {
		return new(big.Int).Mul(e.units, tenTo(digits-e.places))
	}
	return divideHalfEven(e.units, tenTo(e.places-digits))
}

// rat returns the exact number; an absent one is zero.
func (d decimal) rat() (*big.Rat, error) {
	e, err := d.exact()
	if err != nil {
		return nil, err
	}
	return new(big.Rat).SetFrac(e.units, tenTo(e.places)), nil
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
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// powersOfTen are those that numbers need, of which two may be multiplied.
var powersOfTen = func() (powers [2*maxDecimalLength + 1]*big.Int) {
	powers[0] = big.NewInt(1)
	for n := 1; n < len(powers); n++ {
		powers[n] = new(big.Int).Mul(powers[n-1], big.NewInt(10))
	}
	return powers
}()

// tenTo returns ten to the power of digits, which is not to be changed.
func tenTo(digits int) *big.Int { return powersOfTen[digits] }

// scaled returns the number times ten to the power of digits.
func scaled(r *big.Rat, digits int) *big.Rat {
	return new(big.Rat).Mul(r, new(big.Rat).SetInt(tenTo(digits)))
}

// roundHalfEven returns the nearest integer; of two equally near ones the even one.
func roundHalfEven(r *big.Rat) *big.Int { return divideHalfEven(r.Num(), r.Denom()) }

// divideHalfEven returns the integer nearest to a quotient with a positive divisor; of two equally
// near ones the even one.
func divideHalfEven(a, b *big.Int) *big.Int {
	// Euclidean: the remainder is not negative.
	quotient, remainder := new(big.Int).DivMod(a, b, new(big.Int))
	switch half := remainder.Lsh(remainder, 1).Cmp(b); {
	case half > 0, half == 0 && quotient.Bit(0) == 1:
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
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
	e, err := d.exact()
	if err != nil {
		return 0, err
	}
	return toInt64(e.minor(digits), string(d))
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
