package posting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// CaseResult is the result of one case.
type CaseResult struct {
	// Title and Place are the case's.
	Title string `json:"title"`
	Place Place  `json:"place"`
	// Passed reports whether the result is the expected one; then Differences is empty.
	Passed bool `json:"passed"`
	// Differences has one line for each difference. A line that starts with "-" is an entry that was
	// expected and is missing, one with "+" an entry that was not expected.
	Differences []string `json:"differences,omitempty"`
	// Impact is what the rules made of the document; nil: it failed.
	Impact *Impact `json:"-"`
	// Err is why the document failed, an *Error; nil: it did not.
	Err error `json:"-"`
}

// RunCases evaluates the document of each case and compares the result with the expected one. The
// results are in the order of the cases. A nil chart, such as the Accounts of a file that has none,
// has every account that the rules name.
func RunCases(rules *RuleSet, chart Chart, cases []Case) []CaseResult {
	if accounts, ok := chart.(Accounts); chart == nil || ok && accounts == nil {
		chart = NewAccounts(rules.accounts...)
	}
	results := make([]CaseResult, len(cases))
	for i := range cases {
		r := CaseResult{Title: cases[i].Title, Place: cases[i].Place}
		r.Impact, r.Err = rules.Evaluate(&cases[i].Document, chart)
		r.Differences = cases[i].Expect.compare(r.Impact, r.Err)
		r.Passed = len(r.Differences) == 0
		results[i] = r
	}
	return results
}

// compare says how the impact, or the error in its place, differs from what is expected.
func (x *Expectation) compare(impact *Impact, err error) []string {
	var differences []string
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	if failed, ok := errors.AsType[*Error](err); ok {
		switch {
		case x.Error == "":
			differ("it fails with %s: %v", failed.Code, failed)
		case x.Error != failed.Code:
			differ("the error is %s, want %s: %v", failed.Code, x.Error, failed)
		case !strings.Contains(failed.Error(), x.Message):
			differ("the message lacks %q: %v", x.Message, failed)
		}
		if x.Error != "" && x.Rule != "" && x.Rule != failed.Rule {
			differ("the rule is %q, want %q", failed.Rule, x.Rule)
		}
		return differences
	}
	if x.Error != "" {
		differ("it posts by the rule %q, want the error %s", impact.RuleID, x.Error)
		return append(differences, unexpected(impact.Entries)...)
	}
	if x.Rule != "" && x.Rule != impact.RuleID {
		differ("the rule is %q, want %q", impact.RuleID, x.Rule)
	}
	if x.PostingDate != nil && *x.PostingDate != impact.PostingDate {
		differ("the posting date is %v, want %v", impact.PostingDate, *x.PostingDate)
	}
	return append(differences, x.compareEntries(impact.Entries)...)
}

// compareEntries gives each expected entry one that was made, such that as many as can be have one:
// an expected entry that leaves its rule line or dimensions open may fit several. Those that name
// them come first, so that one is missing that leaves them open.
func (x *Expectation) compareEntries(entries []Entry) []string {
	takenBy := make([]int, len(entries)) // 1 + the expected entry; 0: none
	found := make([]bool, len(x.Entries))
	for _, named := range []bool{true, false} {
		for i, e := range x.Entries {
			if (e.RuleLineID != "" || e.Dimensions != nil) == named {
				found[i] = x.match(i, entries, takenBy, make([]bool, len(entries)))
			}
		}
	}
	var differences []string
	for i := range x.Entries {
		if !found[i] {
			differences = append(differences, "- "+describeEntry(&x.Entries[i]))
		}
	}
	var left []Entry
	for i, e := range entries {
		if takenBy[i] == 0 {
			left = append(left, e)
		}
	}
	return append(differences, unexpected(left)...)
}

// match finds an entry for expected entry i, and another one for the expected entry that has it; it
// reports whether there is one. tried are entries that were asked for already.
func (x *Expectation) match(i int, entries []Entry, takenBy []int, tried []bool) bool {
	for n := range entries {
		if tried[n] || !x.Entries[i].is(&entries[n]) {
			continue
		}
		tried[n] = true
		if takenBy[n] == 0 || x.match(takenBy[n]-1, entries, takenBy, tried) {
			takenBy[n] = i + 1
			return true
		}
	}
	return false
}

// is reports whether an entry is the expected one.
func (e *ExpectedEntry) is(got *Entry) bool {
	return e.Account == got.Account && e.Side == got.Side && e.Amount == got.Amount && e.Currency == got.Currency &&
		(e.RuleLineID == "" || e.RuleLineID == got.RuleLineID) &&
		(e.Dimensions == nil || e.Dimensions.Equal(got.Dimensions))
}

func unexpected(entries []Entry) []string {
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, "+ "+describeEntry(&ExpectedEntry{
			Account: e.Account, Side: e.Side, Amount: e.Amount, Currency: e.Currency, RuleLineID: e.RuleLineID,
			Dimensions: e.Dimensions,
		}))
	}
	return lines
}

// describeEntry writes an entry for people: account, side, amount, currency, and the rule line and
// dimensions where they are known.
func describeEntry(e *ExpectedEntry) string {
	text := fmt.Sprintf("%s %s %s", e.Account, e.Side, models.FormatMinor(e.Amount, e.Currency))
	if e.RuleLineID != "" {
		text += " (line " + e.RuleLineID + ")"
	}
	switch {
	case len(e.Dimensions) > 0:
		text += " [" + e.Dimensions.String() + "]"
	case e.Dimensions != nil:
		text += " [no dimensions]"
	}
	return text
}
