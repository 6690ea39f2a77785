package console

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// accounting adds the pages of accounting jobs.
func (c *console) accounting() {
	c.addToMenu(menuEntry{"Work", "Accounting", "accounting"})
	c.page("GET "+Root+"accounting", tokens.ScopeRead, c.accountingList)
	c.page("GET "+Root+"accounting/{id}", tokens.ScopeRead, c.accountingPage)
	c.action(Root+"accounting/{id}/retry", tokens.ScopeOperate, "accounting.retry", c.retryAccountingJob)
	c.action(Root+"accounting/{id}/cancel", tokens.ScopeOperate, "accounting.cancel", c.cancelAccountingJob)
}

func (c *console) accountingList(ctx context.Context, r *request) (*view, error) {
	form := filters{Action: Root + "accounting", Hidden: hiddenOrg(r), Fields: []field{
		{Name: "state", Label: "State", Options: jobStates()},
		{Name: "code", Label: "Error code"},
		{Name: "documentId", Label: "Document"},
		{Name: "since", Label: "Changed since", Placeholder: "24h, 7d, 2026-01-31T09:30"},
	}}
	if set(r, "state", "code", "documentId", "since") {
		form.Clear = r.link("accounting")
	}
	form = r.filter(form)
	f := listing.AccountingJobFilter{Code: models.ErrorCode(value(r, "code")), Limit: pageRows}
	var err error
	if f.OrgID, err = r.org(); err != nil {
		return nil, err
	}
	if f.State, err = stateOf(value(r, "state")); err != nil {
		return nil, err
	}
	if f.Since, err = timeOf(r, "since"); err != nil {
		return nil, err
	}
	cursor := r.FormValue("cursor")
	found, err := c.Listing.FindAccountingJobs(ctx, f, value(r, "documentId"), cursor)
	if err != nil {
		return nil, err
	}
	for i := range found.Jobs {
		maskError(&found.Jobs[i].LastError)
	}
	many := ""
	if f.State == models.JobFailed && len(found.Jobs) > 0 && value(r, "documentId") == "" {
		many = r.link("dead-letters/retry", append(keep(r, "code", "since"), "kind", "accounting")...)
	}
	return &view{
		Title: "Accounting jobs", Template: "accounting", Nav: "accounting", Live: cursor == "", Data: map[string]any{
			"Filters": form, "Jobs": found.Jobs, "Searched": found.Searched, "Pager": pagerOf(r, found.Next),
			"Filtered": form.Clear != "" || f.OrgID != "", "ByFailure": f.State == models.JobFailed, "Many": many,
		},
	}, nil
}

// ownAccountingJob reads the job that the address names, or returns ErrJobNotFound for one that the
// token does not reach.
func (c *console) ownAccountingJob(ctx context.Context, r *request) (models.AccountingJob, error) {
	org, err := r.reach("")
	if err != nil {
		return models.AccountingJob{}, err
	}
	return c.Listing.AccountingJobByID(ctx, org, r.PathValue("id"))
}

func (c *console) accountingPage(ctx context.Context, r *request) (*view, error) {
	h, err := historyPage(r)
	if err != nil {
		return nil, err
	}
	job, err := c.ownAccountingJob(ctx, r)
	if err != nil {
		return nil, err
	}
	told, err := c.tell(ctx, r, standingOfAccounting(&job))
	if err != nil {
		return nil, err
	}
	attempts, err := c.Listing.Attempts(ctx, job.ID, listing.HistoryPage{Before: h.Before, Limit: attemptsShown + 1})
	if err != nil {
		return nil, err
	}
	var older pager
	if len(attempts) > attemptsShown {
		attempts = attempts[:attemptsShown]
		older.Next = r.here("before", strconv.FormatInt(attempts[attemptsShown-1].ID, 10))
	}
	if h.Before > 0 {
		older.First = r.here("before", "")
	}
	rows := make([]attemptRow, len(attempts))
	for i := range attempts {
		rows[i] = c.attemptRow(&attempts[i])
	}
	owners, err := store.Owners(ctx, c.Pool, "accounting", []string{""})
	if err != nil {
		return nil, err
	}
	explained, err := c.Listing.ExplainPart(ctx, job.OrgID, job.DocumentID,
		listing.ExplainLimits{Impacts: jobImpacts, Entries: jobEntries})
	if err != nil && !errors.Is(err, store.ErrDocumentNotFound) {
		return nil, err
	}
	impacts := postings(explained)
	for i := range impacts {
		if err := c.nameAccounts(ctx, job.OrgID, impacts[i].Lines); err != nil {
			return nil, err
		}
	}
	open := job.State == models.JobPending || job.State == models.JobLeased
	return &view{
		Title: "Document " + job.DocumentID, Template: "accounting-job", Nav: "accounting", Live: open,
		Trail: []trail{{"Accounting jobs", r.link("accounting")}}, Data: map[string]any{
			"Job": job, "Story": told, "Error": redact.Text(answers.Text(job.LastError)),
			"Priority": answers.Priority(job.Priority), "Owner": owners[""], "Trace": traceID(job.TraceParent),
			"Attempts": rows, "Timeline": drawAttempts(rows, nil, runningSince(job.State, job.AttemptStartedAt),
				dueNext(job.State, job.ReadyAt), r.now), "Pager": older,
			"Explained": explained, "Impacts": impacts,
			"DocumentPage": documentAddress(job.OrgID, job.DocumentID), "Choices": accountingChoices(&job),
		},
	}, nil
}

// jobImpacts is how many of a document's last impacts its job's page shows, and jobEntries how many
// entries of each: the document's own page shows more.
const (
	jobImpacts = 2
	jobEntries = 50
)

// postedImpact is an impact with its entries.
type postedImpact struct {
	*listing.ExplainedImpact
	Lines []entryLine
	// More is how many entries are not shown.
	More int
}

// postings are a document's last impacts, the last one first.
func postings(e listing.Explanation) []postedImpact {
	list := make([]postedImpact, 0, len(e.Impacts))
	for i := len(e.Impacts) - 1; i >= 0; i-- {
		m := &e.Impacts[i]
		list = append(list, postedImpact{m, linesOfEntries(m.Entries), m.EntryCount - len(m.Entries)})
	}
	return list
}

// documentAddress is the address of a document's own page.
func documentAddress(org, document string) string {
	return address(org, "documents", "document", document)
}

// accountingChoices are the actions that make sense for an accounting job as it is.
func accountingChoices(j *models.AccountingJob) []choice {
	at := Root + "accounting/" + url.PathEscape(j.ID)
	retry := choice{
		Action: at + "/retry", Label: "Retry now",
		Says: "It is due at once, and its attempts are counted from 0. Mend the cause first, or it fails again.", Tone: "",
		Mode: queue.RetryNow, Minutes: false,
	}
	later := choice{
		Action: at + "/retry", Label: "Retry later", Says: "The same, after this many minutes.",
		Tone: "quiet", Mode: queue.RetryLater, Minutes: true,
	}
	cancel := choice{
		Action: at + "/cancel", Label: "Cancel", Tone: "danger",
		Says: "The document is not posted, unless it is asked for again. What is posted already stays.",
	}
	switch j.State {
	case models.JobPending:
		retry.Says, later.Says = "It is due at once. Its attempts stay counted.",
			"It is due after this many minutes. Its attempts stay counted."
		return []choice{retry, later, cancel}
	case models.JobFailed:
		return []choice{retry, later, cancel}
	case models.JobLeased:
		retry.Label, retry.Says = "Again after this attempt", "The running attempt goes on; another one follows it."
		cancel.Says = "The running attempt commits nothing. What is posted already stays."
		return []choice{retry, cancel}
	case models.JobCompleted:
		retry.Label, retry.Says = "Check again", "The document is read and posted anew if it, or its rules, differ from "+
			"what is posted; otherwise nothing changes."
		return []choice{retry}
	case models.JobCancelled:
	}
	return []choice{retry}
}

func (c *console) retryAccountingJob(ctx context.Context, r *request) (done, error) {
	job, err := c.ownAccountingJob(ctx, r)
	if err != nil {
		return done{}, err
	}
	mode, delay, err := retryMode(r)
	switch {
	case err != nil:
		return done{}, err
	case mode != queue.RetryNow && mode != queue.RetryLater:
		return done{}, store.Invalid("an accounting job is tried again now or later, not %q", mode)
	}
	answer, err := queue.MarkAccountingJobPending(ctx, c.Pool,
		queue.PendingAccountingJob{OrgID: job.OrgID, DocumentID: job.DocumentID, Delay: delay})
	return done{
		To: r.link("accounting/" + url.PathEscape(job.ID)), Text: retried(answer), Org: job.OrgID, Subject: job.DocumentID,
		Details: map[string]any{"mode": mode, "delay_seconds": delay.Seconds()},
	}, err
}

func (c *console) cancelAccountingJob(ctx context.Context, r *request) (done, error) {
	job, err := c.ownAccountingJob(ctx, r)
	if err != nil {
		return done{}, err
	}
	answer, err := queue.CancelAccountingJob(ctx, c.Pool, queue.Document{OrgID: job.OrgID, ID: job.DocumentID})
	return done{
		To: r.link("accounting/" + url.PathEscape(job.ID)), Text: cancelled(answer), Org: job.OrgID,
		Subject: job.DocumentID,
	}, err
}
