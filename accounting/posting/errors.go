package posting

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/models"
)

// Place is a position in a rule set's YAML source, counted from 1. The zero value is no place.
type Place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// String returns "line:column", or the empty string for no place.
func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}

// Error says why a document cannot be posted. Evaluate returns no other kind of error; find it with
// errors.As.
type Error struct {
	// Code is one of NO_MATCHING_RULE, AMBIGUOUS_RULE, UNKNOWN_ACCOUNT, UNBALANCED and
	// DOCUMENT_INVALID.
	Code models.ErrorCode
	// Rule is the id of the rule that was evaluated; empty: none was found.
	Rule string
	// Line is the id of the rule's line; empty: the error belongs to no line.
	Line string
	// Place is where in the rule set the cause stands; zero: nowhere in particular.
	Place Place
	// Message says what is wrong and what to do about it, without the fields above.
	Message string
}

// Error returns the message preceded by the rule, the line and the place.
func (e *Error) Error() string {
	where := describe(e.Rule, e.Line)
	if p := e.Place.String(); p != "" {
		where = strings.TrimSpace(where + " at " + p)
	}
	if where == "" {
		return e.Message
	}
	return where + ": " + e.Message
}

// Problem is one thing that is wrong with a rule set or a file of test cases.
type Problem struct {
	Place
	// Rule and RuleLine are the ids of the rule and of its line; empty: the problem lies outside of
	// one.
	Rule     string `json:"rule,omitempty"`
	RuleLine string `json:"rule_line,omitempty"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
}

// String returns the problem on one line, its place first.
func (p Problem) String() string {
	parts := make([]string, 0, 3)
	if s := p.Place.String(); s != "" {
		parts = append(parts, s)
	}
	if s := describe(p.Rule, p.RuleLine); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// CompileError lists everything that is wrong with a rule set, or with a file of test cases, in the
// order of the source. It is never empty.
type CompileError struct {
	Problems []Problem
	// what the source is; empty: a rule set
	what string
}

// errInvalidRules gives a CompileError its class.
var errInvalidRules = failure.New(failure.InvalidRules, "the rules are invalid")

// Unwrap returns what a CompileError is to programs that tell errors by their class.
func (e *CompileError) Unwrap() error { return errInvalidRules }

// Error returns one line a problem.
func (e *CompileError) Error() string {
	what := cmp.Or(e.what, "rule set")
	if len(e.Problems) == 1 {
		return what + ": " + e.Problems[0].String()
	}
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("%s: %d problems", what, len(e.Problems)))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// describe names a rule and its line, as far as they are known.
func describe(rule, line string) string {
	switch {
	case rule == "":
		return ""
	case line == "":
		return fmt.Sprintf("rule %q", rule)
	default:
		return fmt.Sprintf("rule %q, line %q", rule, line)
	}
}
