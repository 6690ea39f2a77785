package console

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// deadLetters adds the page of dead letters in groups, and what is done with many at once.
func (c *console) deadLetters() {
	c.addToMenu(menuEntry{"Work", "Dead letters", "dead-letters"})
	c.page("GET "+Root+"dead-letters", tokens.ScopeRead, c.deadLetterGroups)
	c.page("GET "+Root+"dead-letters/retry", tokens.ScopeOperate, c.confirmRetry)
	c.page("GET "+Root+"dead-letters/cancel", tokens.ScopeOperate, c.confirmCancel)
	c.action(Root+"dead-letters/retry", tokens.ScopeOperate, "jobs.retry_many", c.retryMany)
	c.action(Root+"dead-letters/cancel", tokens.ScopeOperate, "jobs.cancel_many", c.cancelMany)
	c.page("GET "+Root+"dead-letters/edit", tokens.ScopeOperate, c.patchPage)
	c.page("POST "+Root+"dead-letters/edit/try", tokens.ScopeOperate, c.tryPatchPage)
	c.action(Root+"dead-letters/edit", tokens.ScopeOperate, "jobs.edit_many", c.patchMany)
	c.page("GET "+Root+"bulk/{id}", tokens.ScopeOperate, c.bulkPage)
}

// letterRow is a group of dead letters as the page shows it.
type letterRow struct {
	listing.DeadLetters
	// Owner is who owns the type, as a worker has put it on record; empty: none has.
	Owner string
	// List is the address of the group's list, Example that of its newest job.
	List, Example string
	// Retry, Cancel and Edit lead to the pages that ask first; empty: there is no such action.
	Retry, Cancel, Edit string
	// What helps.
	Todo string
}

func (c *console) deadLetterGroups(ctx context.Context, r *request) (*view, error) {
	org, err := r.org()
	if err != nil {
		return nil, err
	}
	all, err := c.Listing.DeadLetters(ctx, org, r.Token.OrgID == nil && org == "")
	if err != nil {
		return nil, err
	}
	owners, err := c.ownersOf(ctx, all.Groups)
	if err != nil {
		return nil, err
	}
	rows := make([]letterRow, len(all.Groups))
	for i, g := range all.Groups {
		g.Error = redact.Text(answers.ErrorText(&g.Error))
		row := letterRow{DeadLetters: g, Owner: owners[g.Kind][g.Type], Todo: reasons[g.Code].Todo}
		code := string(g.Code)
		switch g.Kind {
		case "jobs":
			row.List = r.link("jobs", "state", "failed", "type", g.Type, "code", code)
			row.Example = r.link("jobs/" + url.PathEscape(g.ID))
			row.Retry = r.link("dead-letters/retry", "kind", g.Kind, "type", g.Type, "code", code)
			row.Cancel = r.link("dead-letters/cancel", "kind", g.Kind, "type", g.Type, "code", code)
			row.Edit = r.link("dead-letters/edit", "kind", g.Kind, "type", g.Type, "code", code)
		case "accounting":
			row.List = r.link("accounting", "state", "failed", "code", code)
			row.Example = r.link("accounting/" + url.PathEscape(g.ID))
			row.Retry = r.link("dead-letters/retry", "kind", g.Kind, "code", code)
		case "tasks":
			row.List, row.Example = r.link("tasks", "state", "stuck", "type", g.Type), r.link("tasks/"+url.PathEscape(g.ID))
			row.Todo = ""
		}
		rows[i] = row
	}
	return &view{
		Title: "Dead letters", Template: "dead-letters", Nav: "dead-letters", Live: true,
		Lead: "What failed and is not tried again by itself, in groups of the same cause.",
		Data: map[string]any{"Groups": rows, "More": all.More, "Since": all.Since},
	}, nil
}

// ownersOf are the owners of types by kind and type.
func (c *console) ownersOf(ctx context.Context, groups []listing.DeadLetters) (map[string]map[string]string, error) {
	types := map[string][]string{}
	for _, g := range groups {
		types[g.Kind] = append(types[g.Kind], g.Type)
	}
	owners := map[string]map[string]string{}
	for kind, list := range types {
		var err error
		if owners[kind], err = store.Owners(ctx, c.Pool, kind, list); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// many is a request for many dead letters.
type many struct {
	kind       string
	jobs       listing.JobFilter
	accounting listing.AccountingJobFilter
	// until keeps out what fails after the page was made that asks for confirmation.
	until time.Time
}

// manyOf reads from the address, or the form, which dead letters are meant.
func (c *console) manyOf(ctx context.Context, r *request) (many, error) {
	m := many{kind: value(r, "kind")}
	var err error
	if m.jobs, err = jobFilter(r); err != nil {
		return m, err
	}
	if m.jobs.State != "" && m.jobs.State != models.JobFailed {
		return m, store.Invalid("dead letters are meant here, whose state is failed, not %s", m.jobs.State)
	}
	m.jobs.State = models.JobFailed
	if m.jobs.Until.IsZero() {
		if m.jobs.Until, err = store.Now(ctx, c.Pool); err != nil {
			return m, err
		}
	}
	m.until = m.jobs.Until
	switch m.kind {
	case "jobs":
	case "accounting":
		m.accounting = listing.AccountingJobFilter{
			OrgID: m.jobs.OrgID, Code: m.jobs.Code, Since: m.jobs.Since,
			Until: m.until,
		}
	default:
		return m, store.Invalid("kind is %q: dead letters of jobs and accounting can be changed together", m.kind)
	}
	return m, nil
}

// hidden are the fields by which a form means the same dead letters: times are those of now,
// whatever they were relative to.
func (m *many) hidden() []field {
	f := m.jobs
	fields := []field{{Name: "kind", Value: m.kind}, {Name: "until", Value: m.until.UTC().Format(time.RFC3339Nano)}}
	for _, one := range []field{
		{Name: "org", Value: f.OrgID},
		{Name: "type", Value: f.Type},
		{Name: "code", Value: string(f.Code)},
		{Name: "linkKind", Value: f.Link.Kind},
		{Name: "linkId", Value: f.Link.ID},
		{Name: "idempotencyKey", Value: f.Key},
	} {
		if one.Value != "" {
			fields = append(fields, one)
		}
	}
	if !f.Since.IsZero() {
		fields = append(fields, field{Name: "since", Value: f.Since.UTC().Format(time.RFC3339Nano)})
	}
	return fields
}

// details are what is meant, for the log of actions.
func (m *many) details() map[string]any {
	d := map[string]any{}
	for _, f := range m.hidden() {
		if f.Name != "linkKind" && f.Name != "linkId" {
			d[f.Name] = f.Value
		}
	}
	if link := actions.Link(m.jobs.Link); link != "" {
		d["link"] = link
	}
	return d
}

func (m *many) bulk(dryRun bool) listing.BulkJobs {
	return listing.BulkJobs{Filter: m.jobs, All: true, DryRun: dryRun}
}

// confirmRetry says how many dead letters are meant and what a retry does, before it is done.
func (c *console) confirmRetry(ctx context.Context, r *request) (*view, error) {
	m, err := c.manyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	var op models.BulkOperation
	at := Root + "dead-letters/retry"
	counted := "Their attempts stay counted, and at least one more of each is made."
	choices := []choice{
		{Action: at, Label: "Retry now", Mode: queue.RetryNow, Says: "They are due at once. " + counted},
		{
			Action: at, Label: "Retry later", Mode: queue.RetryLater, Minutes: true, Tone: "quiet",
			Says: "They are due after this many minutes. " + counted,
		},
		{
			Action: at, Label: "Retry from the first attempt", Mode: queue.RetryReset, Tone: "quiet",
			Says: "They are due at once, as if they had never been tried, and their last error is cleared.",
		},
	}
	if m.kind == "accounting" {
		choices = choices[:2]
		choices[0].Says, choices[1].Says = "They are due at once, and their attempts are counted from 0.",
			"The same, after this many minutes."
		op, err = c.Listing.StartAccountingRetry(ctx, m.accounting, 0, true)
	} else {
		op, err = c.Listing.StartRetry(ctx, m.bulk(true), string(queue.RetryNow), 0)
	}
	return c.confirm(r, "Retry dead letters", m, op, choices, err)
}

// confirmCancel is confirmRetry for a cancellation.
func (c *console) confirmCancel(ctx context.Context, r *request) (*view, error) {
	m, err := c.manyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if m.kind != "jobs" {
		return nil, errCancelAccounting
	}
	op, err := c.Listing.StartCancel(ctx, m.bulk(true))
	return c.confirm(r, "Cancel dead letters", m, op, []choice{{
		Action: Root + "dead-letters/cancel", Label: "Cancel them", Tone: "danger",
		Says: "They are not dead letters any more and are not worked. Each stays listed as cancelled, and can be retried.",
	}}, err)
}

var errCancelAccounting = failure.New(failure.Invalid, "accounting jobs are cancelled one by one, on their pages")

func (c *console) confirm(r *request, title string, m many, op models.BulkOperation, choices []choice,
	err error,
) (*view, error) {
	if err != nil {
		return nil, err
	}
	for i := range choices {
		choices[i].Hidden = m.hidden()
	}
	return &view{
		Title: title, Template: "confirm", Nav: "dead-letters",
		Trail: []trail{{"Dead letters", r.link("dead-letters")}}, Data: map[string]any{
			"Matched": op.Matched, "Kind": m.kind, "Filter": m.jobs, "Until": m.until, "Choices": choices,
			"Reason": reasons[m.jobs.Code],
		},
	}, nil
}

func (c *console) retryMany(ctx context.Context, r *request) (done, error) {
	m, err := c.manyOf(ctx, r)
	if err != nil {
		return done{}, err
	}
	mode, delay, err := retryMode(r)
	if err != nil {
		return done{}, err
	}
	if m.kind == "accounting" {
		if mode == queue.RetryReset {
			return done{}, store.Invalid("accounting jobs are tried again now or later; both count attempts from 0")
		}
		op, err := c.Listing.StartAccountingRetry(ctx, m.accounting, delay, false)
		return c.begun(ctx, r, m, op, err)
	}
	if mode != queue.RetryNow && mode != queue.RetryLater && mode != queue.RetryReset {
		return done{}, fmt.Errorf("%w, not %q", queue.ErrInvalidRetryMode, mode)
	}
	op, err := c.Listing.StartRetry(ctx, m.bulk(false), string(mode), delay)
	return c.begun(ctx, r, m, op, err)
}

func (c *console) cancelMany(ctx context.Context, r *request) (done, error) {
	m, err := c.manyOf(ctx, r)
	switch {
	case err != nil:
		return done{}, err
	case m.kind != "jobs":
		return done{}, errCancelAccounting
	}
	op, err := c.Listing.StartCancel(ctx, m.bulk(false))
	return c.begun(ctx, r, m, op, err)
}
