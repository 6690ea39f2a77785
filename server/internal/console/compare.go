package console

import (
	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// entryLine is a line of an impact, of the ledger or of a preview.
type entryLine struct {
	Account  string
	Side     models.Side
	Amount   int64
	Currency string
	// RuleLine names the line of the rule that made it.
	RuleLine string
	// DocumentLine is the position, from 1, in the document's list that the rule's line ran over; 0:
	// it ran over none.
	DocumentLine int
	// Dimensions are what statements can be split by, as text.
	Dimensions string
	// Name is the account's; empty: it has none, or it was not asked for.
	Name string
	// Note is what a person wrote beside it.
	Note string
}

// Debit and Credit are the amount on its side, for the columns of a table; empty on the other one.
func (e *entryLine) Debit() string { return e.on(models.Debit) }

// Credit is Debit for the other side.
func (e *entryLine) Credit() string { return e.on(models.Credit) }

func (e *entryLine) on(side models.Side) string {
	if e == nil || e.Side != side {
		return ""
	}
	return money(e.Amount, e.Currency)
}

func linesOfEntries(entries []models.Entry) []entryLine {
	lines := make([]entryLine, len(entries))
	for i, e := range entries {
		lines[i] = entryLine{
			Account: e.Account, Side: e.Side, Amount: e.Amount, Currency: e.Currency,
			RuleLine: e.RuleLineID, Dimensions: e.Dimensions.String(),
		}
		if e.DocumentLine != nil {
			lines[i].DocumentLine = *e.DocumentLine
		}
	}
	return lines
}

func linesOfImpact(m *posting.Impact) []entryLine {
	if m == nil {
		return nil
	}
	lines := make([]entryLine, len(m.Entries))
	for i, e := range m.Entries {
		lines[i] = entryLine{
			Account: e.Account, Side: e.Side, Amount: e.Amount, Currency: e.Currency, RuleLine: e.RuleLineID,
			DocumentLine: e.DocumentLine, Dimensions: e.Dimensions.String(),
		}
	}
	return lines
}

// comparedLine is a line of the old version beside the one of the new version that stands for it.
type comparedLine struct {
	Old, New *entryLine
	// Mark is "changed", "added" or "removed"; empty: the line is the same.
	Mark string
}

// comparison is two versions of an impact side by side.
type comparison struct {
	Lines []comparedLine
	// Changed counts the lines that are not the same, Hidden those that are not shown.
	Changed, Hidden int
}

// comparedLines is how many lines a comparison shows, previewedLines how many one of a preview,
// which has many; of a longer one those that changed are shown.
const (
	comparedLines  = 200
	previewedLines = 20
)

// sameLine are the ways in which a line stands for another one, the surest first: a line that is
// equal, one to the same account by the same line of the rule, one by the same line of the rule,
// one to the same account.
var sameLine = []func(entryLine) entryLine{
	func(e entryLine) entryLine { return e },
	func(e entryLine) entryLine {
		return entryLine{Account: e.Account, Currency: e.Currency, RuleLine: e.RuleLine, DocumentLine: e.DocumentLine}
	},
	func(e entryLine) entryLine {
		return entryLine{Currency: e.Currency, RuleLine: e.RuleLine, DocumentLine: e.DocumentLine}
	},
	func(e entryLine) entryLine { return entryLine{Account: e.Account, Currency: e.Currency} },
}

// compareLines puts two versions side by side, in the order of the new one, and shows so many lines
// at most.
func compareLines(before, after []entryLine, most int) comparison {
	partner := make([]int, len(after)) // the position from 1 in before; 0: none
	taken := make([]bool, len(before))
	for _, key := range sameLine {
		waiting := map[entryLine][]int{}
		for i, e := range before {
			if !taken[i] {
				waiting[key(e)] = append(waiting[key(e)], i)
			}
		}
		for j, e := range after {
			if queue := waiting[key(e)]; partner[j] == 0 && len(queue) > 0 {
				partner[j], taken[queue[0]] = queue[0]+1, true
				waiting[key(e)] = queue[1:]
			}
		}
	}
	var c comparison
	next := 0
	removed := func(until int) {
		for ; next < until; next++ {
			if !taken[next] {
				c.Lines = append(c.Lines, comparedLine{Old: &before[next], Mark: "removed"})
			}
		}
	}
	for j := range after {
		line := comparedLine{New: &after[j], Mark: "added"}
		if i := partner[j]; i > 0 {
			removed(i - 1)
			line.Old, line.Mark = &before[i-1], "changed"
			if before[i-1] == after[j] {
				line.Mark = ""
			}
		}
		c.Lines = append(c.Lines, line)
	}
	removed(len(before))
	return c.shorten(most)
}

// shorten counts what changed, and leaves out what is past most: first of the lines that are the
// same.
func (c comparison) shorten(most int) comparison {
	var changed []comparedLine
	for _, l := range c.Lines {
		if l.Mark != "" {
			changed = append(changed, l)
		}
	}
	c.Changed = len(changed)
	if n := len(c.Lines); n > most {
		c.Lines = changed[:min(len(changed), most)]
		c.Hidden = n - len(c.Lines)
	}
	return c
}
