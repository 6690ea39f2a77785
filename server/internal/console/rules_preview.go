package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// previewsAtOnce is how many previews a server makes side by side: each reads a source for up to
// some seconds, and evaluates documents for up to five. Further ones wait.
const previewsAtOnce = 2

// previewsShown is how many documents of each kind a preview shows; all that were tried are
// counted.
const previewsShown = 25

var errPreviewsBusy = failure.New(failure.RateLimited, "too many previews: try again in a moment")

// previewView is the form for a change of the rules, and what the change would do.
type previewView struct {
	Org string
	// Base is the version that is active as the page is shown; 0: none.
	Base int64
	// Version is the stored version that is previewed; 0: the source is not stored yet.
	Version int64
	Source  string
	// From says what the source was taken from.
	From string
	// Cases is the YAML of test cases, Results what became of them.
	Cases   string
	Results []posting.CaseResult
	// CaseProblems and Problems say why the cases, or the source, cannot be used; Lines is the source
	// with its wrong lines marked.
	CaseProblems, Problems []posting.Problem
	Lines                  []sourceLine
	// Effect is nil when the source cannot be used.
	Effect *effect
}

// effect is what a change of the rules would do.
type effect struct {
	Name    string
	Preview books.Preview
	// Readable says that this server reads the organization's documents.
	Readable bool
	// Returned counts the jobs that come back, FailedJobs those that failed for any reason. More says
	// that there are more than are counted.
	Returned, FailedJobs int64
	More                 bool
	// Mended would be posted, StillFailing would fail; both are of documents whose jobs failed.
	Mended, StillFailing []previewed
	// Unchanged counts recent documents of which nothing would change.
	Unchanged int
	// Different would be posted differently, Broken would fail; Repaired would be posted and would
	// not be by the present rules.
	Different, Broken, Repaired []previewed
}

// previewed is a document that was tried.
type previewed struct {
	books.Previewed
	Entries comparison
}

// Shown are as many of documents as a page shows.
func (e *effect) Shown(documents []previewed) []previewed {
	return documents[:min(len(documents), previewsShown)]
}

// previewSource shows what a source that was pasted or edited would do.
func (c *console) previewSource(ctx context.Context, r *request, org string) (*view, error) {
	d := previewView{Org: org, Source: formText(r, "source"), Cases: formText(r, "cases"), From: r.PostFormValue("from")}
	return c.preview(ctx, r, d, "Preview of a change")
}

// previewVersion shows what a stored version would do.
func (c *console) previewVersion(ctx context.Context, r *request, org string) (*view, error) {
	set, err := c.versionOf(ctx, r, org)
	if err != nil {
		return nil, err
	}
	number := strconv.FormatInt(set.Version, 10)
	return c.preview(ctx, r, previewView{Org: org, Version: set.Version, Source: set.Source, From: "version " + number},
		"Preview of version "+number)
}

// formText is a text of several lines. Browsers send each line's end as two characters.
func formText(r *request, name string) string {
	return strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n")
}

func (c *console) preview(ctx context.Context, r *request, d previewView, title string) (*view, error) {
	select {
	case c.previews <- struct{}{}:
		defer func() { <-c.previews }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: as many as run at a time are running already", errPreviewsBusy)
	}
	o, err := c.Listing.Organization(ctx, d.Org)
	if err != nil {
		return nil, err
	}
	d.Base = versionNumber(o.ActiveRuleSet)
	rules, err := posting.Compile([]byte(d.Source))
	if wrong, ok := errors.AsType[*posting.CompileError](err); ok {
		d.Problems = wrong.Problems
		d.Lines = numbered(d.Source, linesOf(wrong.Problems)...)
	} else {
		tried, err := books.PreviewRules(ctx, c.Pool, d.Org, rules, books.PreviewOptions{})
		if err != nil {
			return nil, err
		}
		d.Effect = newEffect(rules.Name(), tried)
		e := d.Effect
		if err := c.nameComparisons(ctx, d.Org, e.Mended, e.StillFailing, e.Broken, e.Repaired, e.Different); err != nil {
			return nil, err
		}
		if err := c.runCases(ctx, &d, rules); err != nil {
			return nil, err
		}
	}
	return &view{Title: title, Template: "rules-preview", Data: d, Trail: []trail{{"Rules", r.link("rules")}}}, nil
}

// runCases runs the test cases of the form with the source, and the chart that they name or else
// the organization's.
func (c *console) runCases(ctx context.Context, d *previewView, rules *posting.RuleSet) error {
	if strings.TrimSpace(d.Cases) == "" {
		return nil
	}
	file, err := posting.ParseCases([]byte(d.Cases))
	if wrong, ok := errors.AsType[*posting.CompileError](err); ok {
		d.CaseProblems = wrong.Problems
		return nil
	}
	chart := file.Accounts
	if chart == nil {
		accounts, err := books.Accounts(ctx, c.Pool, d.Org)
		if err != nil {
			return err
		}
		chart = posting.ChartOf(accounts)
	}
	d.Results = posting.RunCases(rules, chart, file.Cases)
	return nil
}

// newEffect sorts the documents that were tried by what would become of them.
func newEffect(name string, p books.Preview) *effect {
	e := &effect{Name: name, Preview: p, Readable: p.Source == store.SourceDaybook}
	ofRules := map[models.ErrorCode]bool{}
	for _, code := range ledgerdb.CodesOfRules() {
		ofRules[code] = true
	}
	for _, f := range p.Failures {
		e.FailedJobs += f.Jobs
		if ofRules[f.Code] {
			e.Returned += f.Jobs
		}
		e.More = e.More || f.Jobs > books.MaxFailures
	}
	for _, d := range p.Failed {
		shown := compared(d)
		if d.Then.Impact != nil {
			e.Mended = append(e.Mended, shown)
		} else {
			e.StillFailing = append(e.StillFailing, shown)
		}
	}
	for _, d := range p.Recent {
		switch {
		case d.Same():
			e.Unchanged++
		case d.Then.Impact == nil:
			e.Broken = append(e.Broken, compared(d))
		case d.Now.Impact == nil:
			e.Repaired = append(e.Repaired, compared(d))
		default:
			e.Different = append(e.Different, compared(d))
		}
	}
	return e
}

func compared(d books.Previewed) previewed {
	return previewed{d, compareLines(linesOfImpact(d.Now.Impact), linesOfImpact(d.Then.Impact), previewedLines)}
}
