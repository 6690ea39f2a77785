package posting

import (
	"cmp"
	"math/bits"
	"slices"
)

// split shares out a line's amount over several accounts; the slices run in parallel.
type split struct {
	accounts []string
	places   []Place
	shares   []uint64
}

// allocate shares out the amount in proportion to the shares, by the method of the largest remainder: each part is cut to
// whole minor units, and the remaining units go one by one to the parts that lost most; of parts that lost the same, the earlier one
// comes first. So the parts add up to the amount exactly, each differs from its exact value by less than one unit, and a negative
// amount is split like the positive one, with the sign changed.
//
// The shares are greater than zero and add up to less than 2⁶³.
func allocate(amount int64, shares []uint64) []int64 {
	magnitude := uint64(amount)
	if amount < 0 {
		magnitude = -magnitude // two's complement: right for the least int64 as well
	}
	var total uint64
	for _, s := range shares {
		total += s
	}
	parts := make([]uint64, len(shares))
	remainders := make([]uint64, len(shares))
	left := magnitude
	for i, s := range shares {
		high, low := bits.Mul64(magnitude, s)
		parts[i], remainders[i] = bits.Div64(high, low, total) // the quotient is at most magnitude, so it fits
		left -= parts[i]
	}
	if left > 0 {
		order := make([]int, len(shares))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
		// The remainders add up to left times total, and each is less than total: more than left of them are not zero.
		for _, i := range order[:left] {
			parts[i]++
		}
	}
	signed := make([]int64, len(parts))
	for i, p := range parts {
		signed[i] = int64(p)
		if amount < 0 {
			signed[i] = int64(-p)
		}
	}
	return signed
}
