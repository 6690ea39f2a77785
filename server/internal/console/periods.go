package console

import (
	"context"
	"fmt"
	"slices"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/days"
	"github.com/daybook-dev/daybook/models"
)

// closedOutShown is how many of the documents are shown that failed because a period is closed.
const closedOutShown = 50

var periodsPage = view{
	Title: "Periods", Template: "periods", Nav: "periods",
	Lead: "Spans of posting dates. Nothing is posted into a closed one; a date in no period is open, unless it lies " +
		"before a closed one, or between the last closed one and the first open one after it.",
}

// periods adds the page of an organization's periods, and the actions on them.
func (c *console) periods() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Periods", Path: "periods"})
	c.ledgerPage("GET "+Root+"periods", periodsPage, c.periodList)
	c.ledgerPage("GET "+Root+"period", view{Nav: "periods"}, c.periodPage)
	c.action(Root+"periods/add", tokens.ScopeOperate, "periods.add", c.addPeriods)
	c.action(Root+"periods/close", tokens.ScopeOperate, "periods.close", c.closePeriod)
	c.action(Root+"periods/open", tokens.ScopeOperate, "periods.open", c.openPeriod)
	c.action(Root+"periods/policy", tokens.ScopeOperate, "periods.policy", c.setPeriodPolicy)
}

// shownPeriod is a period with the button that changes it.
type shownPeriod struct {
	models.Period
	Change button
}

// policyOptions are the choices for documents with a date in a closed period.
var policyOptions = []option{
	{string(models.PolicyFail), "Fail until the period is opened"},
	{string(models.PolicyFirstOpenDay), "Are posted on the first open day after it"},
}

// forceOptions are the choices for documents that are not posted when a period is closed.
var forceOptions = []option{{"", "Name them, and close nothing"}, {"true", "Close it all the same"}}

func (c *console) periodList(ctx context.Context, r *request, org string) (*view, error) {
	o, err := c.Listing.Organization(ctx, org)
	if err != nil {
		return nil, err
	}
	periods, err := books.Periods(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	closedOut := []models.ErrorCode{models.CodePeriodClosed}
	counts, err := ledgerdb.CountFailures(ctx, c.Pool, org, closedOut)
	if err != nil {
		return nil, err
	}
	failed, err := ledgerdb.FailedDocuments(ctx, c.Pool, org, closedOut, closedOutShown)
	if err != nil {
		return nil, err
	}
	slices.Reverse(periods)
	shown := make([]shownPeriod, len(periods))
	for i, p := range periods {
		shown[i] = shownPeriod{p, periodButton(r, org, p, o.ClosedPeriodPolicy)}
	}
	data := map[string]any{
		"Org": org, "Periods": shown, "Policy": o.ClosedPeriodPolicy, "Failed": failed, "FailedJobs": int64(0),
		"Most": int64(ledgerdb.MaxFailures),
		"Add": button{
			Action: Root + "periods/add", Label: "Add", Hidden: []field{{Name: "org", Value: org}}, Next: r.URL.RequestURI(),
			Fields: []field{{Name: "span", Label: "A month, or the twelve months of a year", Placeholder: "2026-03"}},
		},
		"SetPolicy": button{
			Action: Root + "periods/policy", Label: "Set", Tone: "quiet", Hidden: []field{{Name: "org", Value: org}},
			Next: r.URL.RequestURI(),
			Fields: []field{{
				Name: "policy", Label: "Documents with a date in a closed period",
				Value: string(o.ClosedPeriodPolicy), Options: policyOptions,
			}},
		},
	}
	if len(counts) > 0 {
		data["FailedJobs"] = counts[0].Jobs
	}
	return &view{Data: data}, nil
}

// periodButton opens a closed period, or closes an open one after a question.
func periodButton(r *request, org string, p models.Period, policy models.ClosedPeriodPolicy) button {
	b := button{
		Action: Root + "periods/open", Label: "Open", Tone: "quiet", Next: r.URL.RequestURI(),
		Hidden: []field{{Name: "org", Value: org}, {Name: "from", Value: p.StartsOn.String()}},
		Confirm: fmt.Sprintf("Documents are posted into %s to %s again, and jobs that failed because it is closed are "+
			"tried again.", p.StartsOn, p.EndsOn),
	}
	if p.State == models.PeriodOpen {
		b.Action, b.Label, b.Tone = Root+"periods/close", "Close", "danger"
		b.Fields = []field{{
			Name: "force", ID: "force-" + p.StartsOn.String(), Label: "If documents are not posted",
			Options: forceOptions,
		}}
		then := "Documents with a date in it fail with PERIOD_CLOSED until it is opened."
		if policy == models.PolicyFirstOpenDay {
			then = "Documents with a date in it are posted on the first open day after it."
		}
		b.Confirm = fmt.Sprintf("Nothing is posted into %s to %s any more, nor before it outside of open periods. %s "+
			"What is being posted now is waited for.", p.StartsOn, p.EndsOn, then)
	}
	return b
}

// ofLedger reads which organization a form is about; it must be known.
func (c *console) ofLedger(ctx context.Context, r *request) (string, error) {
	org, err := r.org()
	if err == nil && org == "" {
		err = wrongParameter("the organization is missing")
	}
	if err == nil {
		_, err = c.Listing.Organization(ctx, org)
	}
	return org, err
}

func (c *console) addPeriods(ctx context.Context, r *request) (done, error) {
	span := r.PostFormValue("span")
	periods, err := days.Months(span)
	if err != nil {
		return done{}, wrongParameter("%v", err)
	}
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	added, err := books.AddPeriods(ctx, c.Pool, org, periods, books.AddPeriodsOptions{Key: c.ClosingKey})
	text := plural(len(added), "open period", "open periods") + " added."
	if len(added) == 0 {
		text = "Nothing was changed: what " + span + " has is there already."
	}
	return done{Org: org, Subject: span, Text: text}, err
}

func (c *console) closePeriod(ctx context.Context, r *request) (done, error) {
	return c.changePeriod(ctx, r, "closed",
		func(ctx context.Context, db books.DB, org string, p models.Period) (books.PeriodChange, error) {
			return books.ClosePeriod(ctx, db, org, p, books.CloseOptions{Force: r.PostFormValue("force") == "true", Key: c.ClosingKey})
		})
}

func (c *console) openPeriod(ctx context.Context, r *request) (done, error) {
	return c.changePeriod(ctx, r, "open",
		func(ctx context.Context, db books.DB, org string, p models.Period) (books.PeriodChange, error) {
			return books.OpenPeriod(ctx, db, org, p, books.OpenOptions{})
		})
}

// changePeriod closes or opens the period that a form names.
func (c *console) changePeriod(
	ctx context.Context, r *request, state string,
	change func(context.Context, books.DB, string, models.Period) (books.PeriodChange, error),
) (done, error) {
	day, err := periodOf(r)
	if err != nil {
		return done{}, err
	}
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	p, err := change(ctx, c.Pool, org, models.Period{StartsOn: day})
	d := done{
		Org: org, Subject: day.String(),
		Text:    "The period that begins on " + day.String() + " is " + state + "." + broughtBack(p.Returned),
		Details: map[string]any{"returned": p.Returned},
	}
	if !p.Changed && p.Returned == 0 {
		d.Text = "Nothing was changed: the period that begins on " + day.String() + " is " + state + " already."
	}
	if u := p.Unposted; u != nil {
		d.Text += " " + u.Sentence()
		d.Details["unposted"] = u.Failed + u.Waiting
	}
	return d, err
}

func (c *console) setPeriodPolicy(ctx context.Context, r *request) (done, error) {
	policy := models.ClosedPeriodPolicy(r.PostFormValue("policy"))
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	change, err := books.SetClosedPeriodPolicy(ctx, c.Pool, org, policy)
	text := "The policy is set." + broughtBack(change.Returned)
	if !change.Changed && change.Returned == 0 {
		text = "Nothing was changed: that is the policy already."
	}
	return done{Org: org, Subject: string(policy), Text: text, Details: map[string]any{"returned": change.Returned}}, err
}

// periodOf reads the first day of the period that a form names.
func periodOf(r *request) (models.Date, error) {
	day, err := dayParameter("the period's first day", r.PostFormValue("from"))
	if err == nil && day.IsZero() {
		err = wrongParameter("the period's first day is missing")
	}
	return day, err
}

func broughtBack(jobs int) string {
	if jobs == 0 {
		return ""
	}
	return " " + plural(jobs, "failed job is", "failed jobs are") + " pending again."
}
