package posting

import (
	"cmp"
	"slices"

	"github.com/daybook-dev/daybook/models"
)

// RuleSet is a compiled rule set. It never changes and is safe for concurrent use.
type RuleSet struct {
	name     string
	rules    []*rule
	accounts []string
}

// rule is one compiled rule, with the lines of the rule that "like" names.
type rule struct {
	id       string
	place    Place
	when     *expression
	date     *expression
	negate   bool
	nothing  bool // it posts nothing, on purpose
	lines    []*line
	reads    amountSet // what the lines' amounts are taken from
	rounding *rounding
	exchange *exchange
}

// line is one compiled line of a rule.
type line struct {
	id       string
	place    Place
	side     models.Side
	account  string      // the code; empty: accounts or split decides
	accounts *accountMap // nil: account is fixed, or split
	split    *split      // nil: the amount is posted as a whole
	each     list
	as       string
	amount   *expression
	currency *expression // nil: the document's
	when     *expression // nil: always
	// dimensions are in the order of their keys.
	dimensions []dimension
}

// dimension is a value that a line of a rule gives to its entries.
type dimension struct {
	key   string
	value *expression
}

// list says which of the document's lists a line runs over.
type list int

const (
	noList list = iota
	documentLines
	documentTaxes
)

// accountMap determines an account: the first row whose condition holds.
type accountMap struct {
	name  string
	place Place
	rows  []mapRow
	reads []reference // what the conditions look at
}

type mapRow struct {
	when    *expression
	account string
}

// rounding is where small differences go.
type rounding struct {
	place    Place
	account  string
	maxMinor int64
}

// exchange is where the two sides of a conversion meet.
type exchange struct {
	place   Place
	account string
}

// Compile reads a rule set from YAML, checks it against Schema, and type-checks and compiles each
// of its expressions. All problems found are reported together as a *CompileError; no rule set is
// returned with one.
func Compile(source []byte) (*RuleSet, error) {
	src, problems := parseSource(source)
	if src == nil {
		return nil, &CompileError{Problems: problems}
	}
	problems = append(problems, ruleSetSchema.check(src)...)
	c := &compiler{
		src: src, problems: problems, aliases: map[string]string{}, maps: map[mapKey]*accountMap{},
		used: map[string]bool{},
	}
	rs := c.compile()
	if len(c.problems) > 0 {
		return nil, &CompileError{Problems: inOrder(c.problems)}
	}
	return rs, nil
}

// inOrder sorts problems by their places and leaves out repeated ones.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(problems)
}

// Name returns the name that the file gives the rule set.
func (rs *RuleSet) Name() string { return rs.name }

// Accounts returns the codes of all accounts that the rules can post to, sorted, each once. A chart
// without one of them fails some document with UNKNOWN_ACCOUNT.
func (rs *RuleSet) Accounts() []string { return slices.Clone(rs.accounts) }

// accountCodes collects what Accounts returns.
func accountCodes(rules []*rule) []string {
	var codes []string
	for _, r := range rules {
		if r.rounding != nil {
			codes = append(codes, r.rounding.account)
		}
		if r.exchange != nil {
			codes = append(codes, r.exchange.account)
		}
		for _, l := range r.lines {
			switch {
			case l.split != nil:
				codes = append(codes, l.split.accounts...)
			case l.accounts != nil:
				for _, row := range l.accounts.rows {
					codes = append(codes, row.account)
				}
			default:
				codes = append(codes, l.account)
			}
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
