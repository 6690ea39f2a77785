package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// How fine and how great a rate may be. The digits of any rate together are 15 at most: a program
// that reads one as a 64-bit floating point number and writes it again writes the same rate.
const (
	rateDecimals = 6
	rateScale    = 1_000_000
	maxRateWhole = 999_999_999
)

// Rate is a percentage, exactly: 19 % is Rate "19", and 9.975 % is "9.975". It has at most 6
// decimals and 9 digits before them. Rates compare with ==; the zero value is 0 %. In JSON it is a
// number, or a text of the same digits.
type Rate struct{ millionths int64 }

// ParseRate reads a percentage in decimal digits, such as "19", "9.975" or "-5.2"; without a
// percent sign.
func ParseRate(text string) (Rate, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, decimals, point := strings.Cut(digits, ".")
	decimals = strings.TrimRight(decimals, "0")
	if !allDigits(whole) || point && !allDigits(digits[len(whole)+1:]) {
		return Rate{}, fmt.Errorf("rate %.60q: want a percentage in decimal digits, such as 19 or 9.975", text)
	}
	whole = strings.TrimLeft(whole, "0")
	if len(decimals) > rateDecimals || len(whole) > len(strconv.Itoa(maxRateWhole)) {
		return Rate{}, fmt.Errorf("rate %.60q: a percentage has at most %d decimals and is less than %d", text,
			rateDecimals, maxRateWhole+1)
	}
	millionths, err := strconv.ParseInt(whole+decimals+strings.Repeat("0", rateDecimals-len(decimals)), 10, 64)
	if err != nil {
		return Rate{}, fmt.Errorf("rate %.60q: %w", text, err)
	}
	if negative {
		millionths = -millionths
	}
	return Rate{millionths}, nil
}

// MustRate is ParseRate for a rate that is written in a program. It panics if the text is no rate.
func MustRate(text string) Rate {
	r, err := ParseRate(text)
	if err != nil {
		panic(err)
	}
	return r
}

// BasisPoints returns the rate of so many hundredths of a percent: 1900 is 19 %.
func BasisPoints(n int64) (Rate, error) {
	const perBasisPoint = rateScale / 100
	if n > maxRateWhole*100 || n < -maxRateWhole*100 {
		return Rate{}, fmt.Errorf("rate of %d basis points: a percentage is less than %d", n, maxRateWhole+1)
	}
	return Rate{n * perBasisPoint}, nil
}

// BasisPoints returns the rate in hundredths of a percent; false: it is finer than that.
func (r Rate) BasisPoints() (int64, bool) {
	const perBasisPoint = rateScale / 100
	return r.millionths / perBasisPoint, r.millionths%perBasisPoint == 0
}

// Fraction returns the rate as a fraction of whole numbers: 9.975 % is 9975000 of 100000000.
func (r Rate) Fraction() (numerator, denominator int64) { return r.millionths, 100 * rateScale }

// Compare returns -1, 0 or 1: r is less than the other rate, the same, or greater.
func (r Rate) Compare(other Rate) int {
	switch {
	case r.millionths < other.millionths:
		return -1
	case r.millionths > other.millionths:
		return 1
	}
	return 0
}

// IsZero reports whether the rate is 0 %.
func (r Rate) IsZero() bool { return r.millionths == 0 }

// String returns the percentage in decimal digits without zeros at the end: "9.975".
func (r Rate) String() string {
	sign, n := "", r.millionths
	if n < 0 {
		sign, n = "-", -n
	}
	text := sign + strconv.FormatInt(n/rateScale, 10)
	if rest := n % rateScale; rest != 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%0*d", rateDecimals, rest), "0")
	}
	return text
}

// MarshalJSON writes a number, as String does.
func (r Rate) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalJSON reads a number or a text, digit by digit.
func (r *Rate) UnmarshalJSON(b []byte) error {
	text := string(bytes.TrimSpace(b))
	if text == "null" {
		return nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	rate, err := ParseRate(text)
	if err == nil {
		*r = rate
	}
	return err
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// stated is the rate that JSON states: by rate, or by rate_bp in whole basis points, as documents
// did before rates had decimals. Where it states none the rate stays as it was.
func (r *Rate) stated(rate *Rate, rateBP *int64) (err error) {
	switch {
	case rate != nil && rateBP != nil:
		return errors.New("it states both rate and rate_bp: remove rate_bp, which is the rate in hundredths of a percent")
	case rate != nil:
		*r = *rate
	case rateBP != nil:
		*r, err = BasisPoints(*rateBP)
	}
	return err
}

// DecodeJSON reads a line by a decoder of the caller's choice, which reads one JSON value into what
// it is given. So the caller decides how strictly names are taken.
func (l *Line) DecodeJSON(decode func(into any) error) error {
	type plain Line // has no methods
	read := struct {
		plain
		Rate   *Rate  `json:"rate"`
		RateBP *int64 `json:"rate_bp"`
	}{plain: plain(*l)}
	if err := decode(&read); err != nil {
		return err
	}
	*l = Line(read.plain)
	return l.Rate.stated(read.Rate, read.RateBP)
}

// UnmarshalJSON reads a line as encoding/json reads a struct.
func (l *Line) UnmarshalJSON(b []byte) error {
	return l.DecodeJSON(func(into any) error { return json.Unmarshal(b, into) })
}

// DecodeJSON reads a tax; see [Line.DecodeJSON].
func (t *Tax) DecodeJSON(decode func(into any) error) error {
	type plain Tax // has no methods
	read := struct {
		plain
		Rate   *Rate  `json:"rate"`
		RateBP *int64 `json:"rate_bp"`
	}{plain: plain(*t)}
	if err := decode(&read); err != nil {
		return err
	}
	*t = Tax(read.plain)
	return t.Rate.stated(read.Rate, read.RateBP)
}

// UnmarshalJSON reads a tax as encoding/json reads a struct.
func (t *Tax) UnmarshalJSON(b []byte) error {
	return t.DecodeJSON(func(into any) error { return json.Unmarshal(b, into) })
}
