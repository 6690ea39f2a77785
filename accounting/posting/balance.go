package posting

import (
	"math"

	"github.com/daybook-dev/daybook/models"
)

// balance is debit minus credit for each currency. A document has one or two currencies, so a slice
// is faster than a map.
type balance []currencySum

type currencySum struct {
	currency string
	sum      int64
}

// add adds the entry to the sum of its currency; false: the sum does not fit into 64 bits. Nor does
// -2⁶³: no entry could balance it, and the same entries on the other sides, those of a rule with
// negate, would add up to 2⁶³.
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
		if (sum > s.sum) != (amount > 0) || sum == math.MinInt64 {
			return false
		}
		s.sum = sum
		return true
	}
	*b = append(*b, currencySum{entry.Currency, amount})
	return true
}

// converted reports whether something was given in one currency and something received in another.
// A difference in one currency only, or differences on the same side, are no conversion: value
// would come from nowhere.
func (b balance) converted() bool {
	given, received := false, false
	for _, s := range b {
		given = given || s.sum < 0
		received = received || s.sum > 0
	}
	return given && received
}

// offsetDifferences lets the exchange account take what was converted, else the rounding account
// what is within the limit, and refuses any remaining difference. An impact never has both: the
// exchange account takes all differences.
func (e *evaluation) offsetDifferences() error {
	var err error
	if x := e.rule.exchange; x != nil && e.sums.converted() {
		// An entry changes only the sum of its own currency, so the length stands.
		for i := range e.sums {
			if err = e.offset(i, x.account, x.place, ExchangeLineID); err != nil {
				return err
			}
		}
	} else if err = e.round(); err != nil {
		return err
	}
	for _, s := range e.sums {
		if s.sum != 0 {
			return e.fail(models.CodeUnbalanced, nil, e.rule.place, "the entries in %s do not balance after rounding",
				s.currency)
		}
	}
	return nil
}

// round posts each difference within the limit to the rounding account.
func (e *evaluation) round() error {
	for i := range e.sums {
		difference, currency := e.sums[i].sum, e.sums[i].currency
		if difference == 0 {
			continue
		}
		r := e.rule.rounding
		if r == nil {
			return e.fail(models.CodeUnbalanced, nil, e.rule.place,
				"debits minus credits is %d minor units of %s (%s) and the rule has no rounding limit; %s",
				difference, currency, models.FormatMinor(difference, currency), e.remedy())
		}
		if difference > r.maxMinor || difference < -r.maxMinor {
			return e.fail(models.CodeUnbalanced, nil, e.rule.place,
				"debits minus credits is %d minor units of %s (%s) and the rounding limit is %d (%s); %s",
				difference, currency, models.FormatMinor(difference, currency),
				r.maxMinor, models.FormatMinor(r.maxMinor, currency), e.remedy())
		}
		if err := e.offset(i, r.account, r.place, RoundingLineID); err != nil {
			return err
		}
	}
	return nil
}

// remedy says what to do about a difference.
func (e *evaluation) remedy() string {
	if e.rule.exchange == nil && e.sums.converted() {
		return "correct the document or the rule: one that converts names an account under exchange"
	}
	return "correct the document or the rule"
}

// offset posts the difference of one currency to the account, so that the currency balances.
func (e *evaluation) offset(i int, account string, place Place, lineID string) error {
	s := e.sums[i]
	if s.sum == 0 {
		return nil
	}
	entry := Entry{
		Account: account, Side: models.Credit, Amount: s.sum, Currency: s.currency, RuleLineID: lineID,
		Dimensions: e.dimensions,
	}
	if s.sum < 0 {
		entry.Side, entry.Amount = models.Debit, -s.sum
	}
	return e.add(nil, place, entry)
}
