package posting

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAllocate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount int64
		shares []uint64
		want   []int64
	}{
		{100, []uint64{60, 40}, []int64{60, 40}},
		{101, []uint64{60, 40}, []int64{61, 40}},          // 60.6 and 40.4
		{100, []uint64{1, 1, 1}, []int64{34, 33, 33}},     // the first of equal remainders
		{-100, []uint64{1, 1, 1}, []int64{-34, -33, -33}}, // the mirror
		{1, []uint64{1, 1, 1}, []int64{1, 0, 0}},
		{2, []uint64{1, 3, 3}, []int64{0, 1, 1}}, // 0.29, 0.86 and 0.86
		{0, []uint64{1, 2}, []int64{0, 0}},
		{7, []uint64{5}, []int64{7}},
		{math.MaxInt64, []uint64{1, 1}, []int64{4611686018427387904, 4611686018427387903}},
		{math.MinInt64, []uint64{1}, []int64{math.MinInt64}},
		{math.MinInt64, []uint64{1, 1}, []int64{-4611686018427387904, -4611686018427387904}},
	} {
		assert.Equal(t, test.want, allocate(test.amount, test.shares), "%d by %v", test.amount, test.shares)
	}
}

// The parts add up to the amount, each is the exact value rounded down or up, and the other sign
// gives the mirror.
func TestAllocateIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1000, 1000),
			rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64})).Draw(t, "amount")
		shares := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(1, 100), rapid.Uint64Range(1, 1_000_000_000)), 1,
			100).Draw(t, "shares")
		parts := allocate(amount, shares)
		require.Len(t, parts, len(shares))
		total, sum := new(big.Int), new(big.Int)
		for _, s := range shares {
			total.Add(total, new(big.Int).SetUint64(s))
		}
		for i, part := range parts {
			sum.Add(sum, big.NewInt(part))
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(amount), new(big.Int).SetUint64(shares[i])), total)
			off := exact.Sub(exact, new(big.Rat).SetInt64(part))
			require.Negative(t, off.Abs(off).Cmp(big.NewRat(1, 1)), "part %d is %d, off by %v", i, part, off)
		}
		require.Zero(t, sum.Cmp(big.NewInt(amount)), "the parts add up to %v", sum)
		if amount != math.MinInt64 {
			for i, part := range allocate(-amount, shares) {
				require.Equal(t, -parts[i], part, "part %d of the mirror", i)
			}
		}
	})
}
