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

// compareEntries matches entries of the same content. Expected entries that name their rule line
// are matched first, so that an entry that names none does not take their match.
func (x *Expectation) compareEntries(entries []Entry) []string {
	got := map[ExpectedEntry][]int{} // by content; with the rule line, and without it
	for i, e := range entries {
		key := ExpectedEntry{
			Account: e.Account, Side: e.Side, Amount: e.Amount, Currency: e.Currency,
			RuleLineID: e.RuleLineID,
		}
		got[key] = append(got[key], i)
		key.RuleLineID = ""
		got[key] = append(got[key], i)
	}
	taken := make([]bool, len(entries))
	missing := make([]bool, len(x.Entries))
	for _, named := range []bool{true, false} {
		for i, want := range x.Entries {
			if (want.RuleLineID != "") != named {
				continue
			}
			candidates := got[want]
			for len(candidates) > 0 && taken[candidates[0]] {
				candidates = candidates[1:]
			}
			if len(candidates) == 0 {
				missing[i] = true
				got[want] = nil
				continue
			}
			taken[candidates[0]] = true
			got[want] = candidates[1:]
		}
	}
	var differences []string
	for i, want := range x.Entries {
		if missing[i] {
			differences = append(differences, "- "+describeEntry(want))
		}
	}
	var left []Entry
	for i, e := range entries {
		if !taken[i] {
			left = append(left, e)
		}
	}
	return append(differences, unexpected(left)...)
}

func unexpected(entries []Entry) []string {
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, "+ "+describeEntry(ExpectedEntry{
			Account: e.Account, Side: e.Side, Amount: e.Amount, Currency: e.Currency, RuleLineID: e.RuleLineID,
		}))
	}
	return lines
}

// describeEntry writes an entry for people: account, side, amount, currency, and the rule line
// where it is known.
func describeEntry(e ExpectedEntry) string {
	text := fmt.Sprintf("%s %s %s", e.Account, e.Side, models.FormatMinor(e.Amount, e.Currency))
	if e.RuleLineID != "" {
		text += " (line " + e.RuleLineID + ")"
	}
	return text
}
