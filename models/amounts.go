package models

// Amount is one amount that a document states, and not as zero.
type Amount struct {
	// Field names it: "content.payable", "content.lines.net". Lines and taxes have one name for all.
	Field string
	// Minor is in minor units; of lines and taxes it is the first that is not zero.
	Minor int64
}

// Amounts lists the amounts that the content states and that are not zero, each field once, in the
// order in which docs/import.md has them. Rates are no amounts.
func (c *Content) Amounts() []Amount {
	var found []Amount
	add := func(field string, minor int64) bool {
		if minor != 0 {
			found = append(found, Amount{"content." + field, minor})
		}
		return minor != 0
	}
	firstOf(c.Lines, func(l *Line) bool { return add("lines.net", l.Net) })
	firstOf(c.Lines, func(l *Line) bool { return add("lines.cost", l.Cost) })
	firstOf(c.Taxes, func(t *Tax) bool { return add("taxes.base", t.Base) })
	firstOf(c.Taxes, func(t *Tax) bool { return add("taxes.amount", t.Amount) })
	add("total", c.Total)
	add("prepaid", c.Prepaid)
	add("payable", c.Payable)
	add("rounding", c.Rounding)
	add("amount", c.Amount)
	add("fee", c.Fee)
	if c.Settled != nil {
		add("settled.amount", c.Settled.Amount)
	}
	return found
}

// firstOf calls is with each element until it is true.
func firstOf[T any](all []T, is func(*T) bool) {
	for i := range all {
		if is(&all[i]) {
			return
		}
	}
}

// StatesAmount reports whether the content states an amount that is not zero.
func (c *Content) StatesAmount() bool { return len(c.Amounts()) > 0 }

// StatesZero reports whether the content states that its amounts are zero: by Zero, or by lines or
// taxes that come to nothing.
func (c *Content) StatesZero() bool {
	return !c.StatesAmount() && (c.Zero || len(c.Lines) > 0 || len(c.Taxes) > 0)
}
