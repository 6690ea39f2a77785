package posting

import (
	"math"

	"github.com/daybook-dev/daybook/models"
)

// balance is debit minus credit for each currency. Documents have one or two, so a slice is searched faster than a map.
type balance []currencySum

type currencySum struct {
	currency string
	sum      int64
}

// add counts the entry in; false: the sum does not fit into 64 bits.
func (b *balance) add(entry Entry) bool {
	amount := entry.Amount
	if entry.Side == models.Credit {
		amount = -amount
	}
	for i := range *b {
		s := &(*b)[i]
		if s.currency != entry.Currency {
			continue
		}
		sum := s.sum + amount
		// math.MinInt64 is refused as well: nothing could balance it.
		if (sum > s.sum) != (amount > 0) || sum == math.MinInt64 {
			return false
		}
		s.sum = sum
		return true
	}
	*b = append(*b, currencySum{entry.Currency, amount})
	return true
}

// settleBalance lets the rounding account take what is within the limit and refuses what is not.
func (e *evaluation) settleBalance() error {
	// The rounding entry changes only the sum of its own currency, so the length stands.
	for i := range e.sums {
		difference, currency := e.sums[i].sum, e.sums[i].currency
		if difference == 0 {
			continue
		}
		r := e.rule.rounding
		if r == nil {
			return e.fail(models.CodeUnbalanced, nil, e.rule.place,
				"debits minus credits is %d minor units of %s and the rule has no rounding limit; correct the document or the rule", difference, currency)
		}
		if difference > r.maxMinor || difference < -r.maxMinor {
			return e.fail(models.CodeUnbalanced, nil, e.rule.place,
				"debits minus credits is %d minor units of %s and the rounding limit is %d; correct the document or the rule", difference, currency, r.maxMinor)
		}
		entry := Entry{Account: r.account, Side: models.Credit, Amount: difference, Currency: currency, RuleLineID: RoundingLineID}
		if difference < 0 {
			entry.Side, entry.Amount = models.Debit, -difference
		}
		if err := e.add(nil, entry); err != nil {
			return err
		}
	}
	for _, s := range e.sums {
		if s.sum != 0 {
			return e.fail(models.CodeUnbalanced, nil, e.rule.place, "the entries in %s do not balance after rounding", s.currency)
		}
	}
	return nil
}
