package importer

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDecimalMinor(t *testing.T) {
	t.Parallel()
	for text, want := range map[decimal]int64{
		"": 0, "0": 0, "1": 100, "-1.5": -150, "1620.00": 162000, "92233720368547758.07": 9223372036854775807,
		"0.004": 0, "0.005": 0, "0.015": 2, "0.025": 2, "0.0250001": 3, "-0.005": 0, "-0.015": -2, "-0.016": -2,
	} {
		got, err := text.minor(2)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []decimal{
		"x", "1e3", "1/3", "+1", ".5", "5.", "--1", "0x10", "1_000", "92233720368547758.08",
		decimal(strings.Repeat("9", 41)),
	} {
		_, err := text.minor(2)
		assert.ErrorIs(t, err, ErrInvalid, text)
	}
}

func TestDecimalRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[decimal]string{
		"": "0", "21.0%": "21", "0.5%": "0.5", "20%": "20", "8.875%": "8.875", "9.975%": "9.975", "0.21": "21",
		"0.09975": "9.975", "0.00000001": "0.000001", "-1.50%": "-1.5", "999999999.999999%": "999999999.999999",
	} {
		got, err := text.rate()
		require.NoError(t, err, text)
		assert.Equal(t, want, got.String(), text)
	}
	for _, text := range []decimal{"x%", "1/3", "9.9750001%", "0.000000001", "1000000000%"} {
		_, err := text.rate()
		assert.ErrorIs(t, err, ErrInvalid, text)
	}
}

// TestExactNumbersAreRoundedToTheNearest: a product is rounded to the nearest minor unit, the even
// one of two, also where 64 bits do not hold it.
func TestExactNumbersAreRoundedToTheNearest(t *testing.T) {
	t.Parallel()
	number := rapid.StringMatching(`-?[0-9]{1,18}(\.[0-9]{1,20})?|-?[0-9]{1,3}(\.[05]{1,4})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, digits := number.Draw(t, "a"), number.Draw(t, "b"), rapid.IntRange(0, 4).Draw(t, "digits")
		x, err := decimal(a).exact()
		require.NoError(t, err)
		y, err := decimal(b).exact()
		require.NoError(t, err)
		got := x.times(y).minor(digits)

		want, ok := new(big.Rat).SetString(a)
		require.True(t, ok)
		factor, ok := new(big.Rat).SetString(b)
		require.True(t, ok)
		want = scaled(want.Mul(want, factor), digits)
		off := new(big.Rat).Sub(want, new(big.Rat).SetInt(got))
		distance := off.Abs(off).Cmp(big.NewRat(1, 2))
		require.True(t, distance < 0 || distance == 0 && got.Bit(0) == 0, "%s × %s = %s, not %s", a, b, want, got)
	})
}

func TestMinorDigits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"EUR": 2, "JPY": 0, "KWD": 3, "CLF": 4, "COP": 2, "ISK": 0} {
		got, ok := MinorDigits(code)
		assert.True(t, ok, code)
		assert.Equal(t, want, got, code)
	}
	_, ok := MinorDigits("XXX")
	assert.False(t, ok)
}

// TestAllocate: near amounts add up to the total and none moves by a whole unit.
func TestAllocate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exact := make([]*big.Rat, rapid.IntRange(0, 8).Draw(t, "n"))
		sum := new(big.Rat)
		for i := range exact {
			exact[i] = big.NewRat(rapid.Int64Range(-1e6, 1e6).Draw(t, "a"), rapid.Int64Range(1, 300).Draw(t, "b"))
			sum.Add(sum, exact[i])
		}
		total := roundHalfEven(sum).Int64()
		amounts, err := allocate(exact, total)
		require.NoError(t, err)
		var got int64
		for i, a := range amounts {
			got += a
			off := new(big.Rat).Sub(exact[i], new(big.Rat).SetInt64(a))
			require.Negative(t, off.Abs(off).Cmp(big.NewRat(1, 1)))
		}
		require.Equal(t, total, got)
	})
	// A total that is far off is not forced upon the lines.
	amounts, err := allocate([]*big.Rat{big.NewRat(10, 1), big.NewRat(21, 2)}, 99)
	require.NoError(t, err)
	assert.Equal(t, []int64{10, 10}, amounts)
}
