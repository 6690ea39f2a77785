package posting

import (
	"encoding/json"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
	"github.com/daybook-dev/daybook/models/strictyaml"
)

// CaseFile is a file of test cases for a rule set.
type CaseFile struct {
	// RuleSet is the path of the rule set as the file names it, relative to the file; empty: the
	// program that runs the cases names it.
	RuleSet string
	// Chart is the path of a chart of accounts, relative to the file; empty: Accounts is the chart.
	Chart string
	// Accounts is the chart in the file itself; nil: the file has none.
	Accounts Accounts
	// Cases has at least one case; their titles differ.
	Cases []Case
}

// Case is a document and the result that the rules must have for it.
type Case struct {
	// Title says what the case shows.
	Title string
	// Place is where the case begins in its file.
	Place    Place
	Document models.Document
	Expect   Expectation
}

// Expectation is what a case expects: the entries of an impact, or an error.
type Expectation struct {
	// Rule is the id of the rule; empty: any.
	Rule string
	// PostingDate is the impact's; nil: any.
	PostingDate *models.Date
	// Entries are all entries of the impact, in any order; none: it has none.
	Entries []ExpectedEntry
	// Error is the code of the error; empty: there must be no error, and Entries are compared.
	Error models.ErrorCode
	// Message is a part of the error's message; empty: any.
	Message string
}

// ExpectedEntry is an entry of a case.
type ExpectedEntry struct {
	Account string
	Side    models.Side
	// Amount is in minor units and greater than zero.
	Amount   int64
	Currency string
	// RuleLineID is the rule line that must have made the entry; empty: any.
	RuleLineID string
	// Dimensions are all that the entry must have; nil: any, empty: none.
	Dimensions models.Dimensions
}

// ParseCases reads a file of test cases from YAML and checks it against CaseSchema. All problems
// found are reported together as a *CompileError.
func ParseCases(source []byte) (*CaseFile, error) {
	src, problems := parseSource(source)
	if src != nil {
		problems = append(problems, casesSchema.check(src)...)
	}
	if len(problems) > 0 {
		return nil, &CompileError{Problems: inOrder(problems), what: "test cases"}
	}
	r := &caseReader{src: src}
	f := r.file(src.root)
	if len(r.problems) > 0 {
		return nil, &CompileError{Problems: inOrder(r.problems), what: "test cases"}
	}
	return f, nil
}

// caseReader turns a tree that the schema allows into cases.
type caseReader struct {
	src      *source
	problems []Problem
}

func (r *caseReader) report(at *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, Problem{Place: placeOf(at), Message: fmt.Sprintf(format, args...)})
}

func (r *caseReader) file(root *yaml.Node) *CaseFile {
	f := &CaseFile{RuleSet: r.src.textAt(root, "ruleset"), Chart: r.src.textAt(root, "chart")}
	if n := child(root, "accounts"); n != nil {
		if f.Chart != "" {
			r.report(keyNode(root, "accounts"), "a file has either chart or accounts; remove one of them")
		}
		f.Accounts = Accounts{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			var currencies []string
			for _, c := range items(n.Content[i+1]) {
				r.currency(c)
				currencies = append(currencies, c.Value)
			}
			f.Accounts[n.Content[i].Value] = currencies
		}
	}
	titles := map[string]bool{}
	for _, n := range items(child(root, "cases")) {
		c := r.readCase(n)
		if titles[c.Title] {
			r.report(child(n, "title"), "the title %q is taken; give each case one of its own", c.Title)
		}
		titles[c.Title] = true
		f.Cases = append(f.Cases, c)
	}
	return f
}

func (r *caseReader) readCase(n *yaml.Node) Case {
	c := Case{Title: r.src.textAt(n, "title"), Place: placeOf(n), Document: r.document(child(n, "document"))}
	expect := child(n, "expect")
	code, fails := r.src.scalarAt(expect, "error")
	message, hasMessage := r.src.scalarAt(expect, "message")
	entries := child(expect, "entries")
	c.Expect.Rule = r.src.textAt(expect, "rule")
	c.Expect.Error, c.Expect.Message = models.ErrorCode(code.value), message.value
	if date := child(expect, "posting_date"); date != nil {
		c.Expect.PostingDate = r.date(date)
	}
	switch {
	case fails && (entries != nil || c.Expect.PostingDate != nil):
		r.report(expect, "expect either an error or entries, not both")
	case !fails && entries == nil:
		r.report(expect, "expect entries, or an error; entries: [] says that nothing is posted")
	case !fails && hasMessage:
		r.report(expect, "message belongs to an error; add error or remove message")
	}
	for _, e := range items(entries) {
		c.Expect.Entries = append(c.Expect.Entries, r.entry(e, c.Document.Currency))
	}
	return c
}

func (r *caseReader) entry(n *yaml.Node, currency string) ExpectedEntry {
	e := ExpectedEntry{
		Account: r.src.textAt(n, "account"), Side: models.Debit, Currency: currency,
		RuleLineID: r.src.textAt(n, "line"),
	}
	amount, debit := r.src.scalarAt(n, "debit")
	other, credit := r.src.scalarAt(n, "credit")
	if debit == credit {
		r.report(n, "an entry has either a debit or a credit")
	}
	if credit {
		amount, e.Side = other, models.Credit
	}
	e.Amount, _ = strconv.ParseInt(amount.value, 10, 64) // the schema has checked it
	if c := child(n, "currency"); c != nil {
		r.currency(c)
		e.Currency = c.Value
	}
	if d := child(n, "dimensions"); d != nil {
		e.Dimensions = models.Dimensions{}
		for i := 0; i+1 < len(d.Content); i += 2 {
			e.Dimensions[d.Content[i].Value] = d.Content[i+1].Value
		}
		if err := e.Dimensions.Check(); err != nil {
			r.report(d, "%v", err)
		}
	}
	return e
}

func (r *caseReader) currency(n *yaml.Node) {
	if err := models.CheckCurrency(n.Value, models.Date{}); err != nil {
		r.report(n, "%v", err)
	}
}

func (r *caseReader) date(n *yaml.Node) *models.Date {
	d, err := models.ParseDate(n.Value)
	if err != nil {
		r.report(n, "%v", err)
	}
	return &d
}

// document decodes the document as any reader of JSON would.
func (r *caseReader) document(n *yaml.Node) models.Document {
	var doc models.Document
	before := len(r.problems)
	for _, key := range []string{"issue_date", "value_date"} {
		if d := child(n, key); d != nil {
			r.date(d)
		}
	}
	if len(r.problems) > before {
		return doc
	}
	data, err := json.Marshal(strictyaml.Value(n))
	if err == nil {
		err = strictjson.Document(data, &doc, &doc.Content)
	}
	if err != nil {
		r.report(n, "the document cannot be read: %v", err)
	}
	return doc
}
