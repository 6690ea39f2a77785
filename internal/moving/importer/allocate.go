package importer

import (
	"cmp"
	"math/big"
	"slices"
)

// allocate rounds exact amounts to whole minor units so that they add up to the total that the
// document states: all are rounded down, and the missing units go, one each, to those with the
// greatest remainders.
//
// If rounding cannot explain the total, the document contradicts itself. Then each amount is
// rounded half to even separately, and the posting rules find the difference.
func allocate(exact []*big.Rat, total int64) ([]int64, error) {
	floors := make([]*big.Int, len(exact))
	remainders := make([]*big.Rat, len(exact))
	var fractional []int // the amounts that are not whole
	missing := big.NewInt(total)
	for i, r := range exact {
		floors[i], remainders[i] = floorRat(r)
		missing.Sub(missing, floors[i])
		if remainders[i].Sign() != 0 {
			fractional = append(fractional, i)
		}
	}
	one := big.NewInt(1)
	if missing.Sign() >= 0 && missing.Cmp(big.NewInt(int64(len(fractional)))) <= 0 {
		slices.SortStableFunc(fractional,
			func(a, b int) int { return cmp.Or(remainders[b].Cmp(remainders[a]), cmp.Compare(a, b)) })
		for _, i := range fractional[:missing.Int64()] {
			floors[i].Add(floors[i], one)
		}
	} else {
		for i, r := range exact {
			floors[i] = roundHalfEven(r)
		}
	}
	amounts := make([]int64, len(exact))
	for i, f := range floors {
		a, err := toInt64(f, f.String())
		if err != nil {
			return nil, err
		}
		amounts[i] = a
	}
	return amounts, nil
}
