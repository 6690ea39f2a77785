package posting

import (
	"cmp"
	"math"
	"slices"

	"github.com/daybook-dev/daybook/models"
)

// maxShare bounds a share that the rule set states, so that the shares of a line always add up.
const maxShare = 1_000_000_000

// split shares out a line's amount over several accounts; the slices run in parallel.
type split struct {
	accounts []string
	places   []Place
	shares   []*expression
	fixed    []uint64 // the shares where all of them are constants; nil: they depend on the document
}

// sharesOf returns the shares for the document and the element in scope. They are sizes: where all
// are negative, as those of a credit, they share out as their positive counterparts do.
func (e *evaluation) sharesOf(l *line, position int) ([]uint64, error) {
	if l.split.fixed != nil {
		return l.split.fixed, nil
	}
	shares := make([]uint64, len(l.split.shares))
	var positive, negative bool
	var total uint64
	for i, x := range l.split.shares {
		share, err := x.integer(&e.scope)
		if err != nil {
			return nil, e.fail(models.CodeDocumentInvalid, l, x.place, "share%s: %v", l.at(position), err)
		}
		positive, negative = positive || share > 0, negative || share < 0
		shares[i] = magnitude(share)
		if total += shares[i]; total > math.MaxInt64 || shares[i] > math.MaxInt64 {
			return nil, e.fail(models.CodeDocumentInvalid, l, x.place,
				"share%s: integer overflow: the shares add up to more than 64 bits hold", l.at(position))
		}
	}
	switch {
	case positive && negative:
		return nil, e.fail(models.CodeDocumentInvalid, l, l.place,
			"split%s: some of the shares are positive and some negative, which says no proportion; correct the document or "+
				"the rule", l.at(position))
	case total == 0:
		return nil, e.fail(models.CodeDocumentInvalid, l, l.place,
			"split%s: all shares are zero, so nothing says how to share out the amount; correct the document or the rule",
			l.at(position))
	}
	return shares, nil
}

// allocate shares out the amount in proportion to the shares, by the method of the largest
// remainder: each part is cut to whole minor units, and the remaining units go one by one to the
// parts that lost most; of parts that lost the same, the earlier one comes first. So the parts add
// up to the amount exactly, each differs from its exact value by less than one unit, and a negative
// amount is split like the positive one, with the sign changed.
//
// The shares add up to more than zero and less than 2⁶³.
func allocate(amount int64, shares []uint64) []int64 {
	var total uint64
	for _, s := range shares {
		total += s
	}
	parts := make([]uint64, len(shares))
	remainders := make([]uint64, len(shares))
	left := magnitude(amount)
	for i, s := range shares {
		parts[i], remainders[i], _ = proportion(magnitude(amount), s, total) // at most the amount, so it fits
		left -= parts[i]
	}
	if left > 0 {
		order := make([]int, len(shares))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
		// The remainders add up to left times total, and each is less than total: more than left of
		// them are not zero.
		for _, i := range order[:left] {
			parts[i]++
		}
	}
	out := make([]int64, len(parts))
	for i, p := range parts {
		out[i], _ = signed(p, amount < 0) // a part is at most the amount
	}
	return out
}
