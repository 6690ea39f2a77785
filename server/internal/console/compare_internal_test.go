package console

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/models"
)

// marks writes a comparison as text: the mark, the old account and amount, the new ones.
func marks(c comparison) (lines []string) {
	side := func(e *entryLine) string {
		if e == nil {
			return "-"
		}
		return e.Account + " " + e.Debit() + e.Credit()
	}
	for _, l := range c.Lines {
		lines = append(lines, l.Mark+": "+side(l.Old)+" | "+side(l.New))
	}
	return lines
}

func debit(account string, amount int64, ruleLine string, documentLine int) entryLine {
	return entryLine{
		Account: account, Side: models.Debit, Amount: amount, Currency: "EUR", RuleLine: ruleLine,
		DocumentLine: documentLine,
	}
}

func TestCompareLines(t *testing.T) {
	t.Parallel()
	before := []entryLine{
		debit("1200", 300, "total", 0), debit("4400", 100, "revenue", 1),
		debit("4400", 200, "revenue", 2), debit("6000", 5, "fee", 0),
	}
	for name, test := range map[string]struct {
		after   []entryLine
		changed int
		want    []string
	}{
		"the same": {before, 0, []string{
			": 1200 3.00 | 1200 3.00", ": 4400 1.00 | 4400 1.00", ": 4400 2.00 | 4400 2.00",
			": 6000 0.05 | 6000 0.05",
		}},
		"an amount, another account, one gone and one added": {
			[]entryLine{
				debit("1200", 350, "total", 0), debit("4400", 100, "revenue", 1), debit("4500", 200, "revenue", 2),
				debit("7000", 50, "gift", 0),
			},
			4,
			[]string{
				"changed: 1200 3.00 | 1200 3.50", ": 4400 1.00 | 4400 1.00", "changed: 4400 2.00 | 4500 2.00",
				"added: - | 7000 0.50", "removed: 6000 0.05 | -",
			},
		},
		"nothing any more": {
			nil, 4,
			[]string{"removed: 1200 3.00 | -", "removed: 4400 1.00 | -", "removed: 4400 2.00 | -", "removed: 6000 0.05 | -"},
		},
		"the order alone": {
			[]entryLine{before[3], before[2], before[1], before[0]},
			0,
			[]string{
				": 6000 0.05 | 6000 0.05", ": 4400 2.00 | 4400 2.00", ": 4400 1.00 | 4400 1.00",
				": 1200 3.00 | 1200 3.00",
			},
		},
		"a line of the first": {
			before[1:2], 3,
			[]string{
				"removed: 1200 3.00 | -", ": 4400 1.00 | 4400 1.00", "removed: 4400 2.00 | -",
				"removed: 6000 0.05 | -",
			},
		},
	} {
		c := compareLines(before, test.after, 10)
		assert.Equal(t, test.want, marks(c), name)
		assert.Equal(t, test.changed, c.Changed, name)
	}

	short := compareLines(before, []entryLine{debit("1200", 350, "total", 0), before[1], before[2], before[3]}, 2)
	assert.Equal(t, []string{"changed: 1200 3.00 | 1200 3.50"}, marks(short),
		"what is the same is left out of a long one")
	assert.Equal(t, 3, short.Hidden)
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{0, "EUR", "0.00"},
		{-5, "EUR", "−0.05"},
		{123456789, "EUR", "1\u202f234\u202f567.89"},
		{-1234, "JPY", "−1\u202f234"},
		{1234567, "KWD", "1\u202f234.567"},
	} {
		assert.Equal(t, test.want, money(test.amount, test.currency))
	}
}

func TestLineOfRule(t *testing.T) {
	t.Parallel()
	const source = "rules:\n  - id: sale\n  - id: \"sale.2\" # of things\n  - {id: other, when: true}\r\n"
	for rule, want := range map[string]int{"sale": 2, "sale.2": 3, "other": 4, "saleX2": 0, "": 0, "when": 0} {
		assert.Equal(t, want, lineOfRule(source, rule), rule)
	}
}
