package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// attemptsShown is how many attempts a job's page shows at a time.
const attemptsShown = 50

// historyPage reads from the address which part of the attempts is shown.
func historyPage(r *request) (listing.HistoryPage, error) {
	h := listing.HistoryPage{Limit: attemptsShown}
	before := r.FormValue("before")
	if before == "" {
		return h, nil
	}
	var err error
	if h.Before, err = strconv.ParseInt(before, 10, 64); err != nil {
		err = store.Invalid("before is %q: it is the id of an attempt, as the page links it", before)
	}
	return h, err
}

func (c *console) jobPage(ctx context.Context, r *request) (*view, error) {
	return c.jobView(ctx, r, func(*listing.JobDetail) error { return nil })
}

// decryptJob shows a job with what is encrypted of it in plain.
func (c *console) decryptJob(ctx context.Context, r *request) (done, error) {
	var of models.Job
	v, err := c.jobView(ctx, r, func(d *listing.JobDetail) error {
		of = d.Job
		return answers.Decrypt(ctx, c.Encryption, d)
	})
	if v != nil {
		v.Live = false // what is read anew is encrypted
	}
	return done{Show: v, Org: of.OrgID, Subject: r.PathValue("id")}, err
}

// jobView is a job's page. prepare may change what it shows of the job.
func (c *console) jobView(ctx context.Context, r *request, prepare func(*listing.JobDetail) error) (*view, error) {
	org, err := r.reach("")
	if err != nil {
		return nil, err
	}
	h, err := historyPage(r)
	if err != nil {
		return nil, err
	}
	d, err := c.Listing.Job(ctx, org, r.PathValue("id"), h)
	if err != nil {
		return nil, err
	}
	key := encryption.KeyOf(d.Payload)
	if err := prepare(&d); err != nil {
		return nil, err
	}
	secrets, err := store.SecretsOf(ctx, c.Pool, d.Type)
	if err != nil {
		return nil, err
	}
	told, err := c.tell(ctx, r, standingOfJob(&d.Job))
	if err != nil {
		return nil, err
	}
	fleets, err := fleetsOf(ctx, c, []models.Job{d.Job})
	if err != nil {
		return nil, err
	}
	rows := make([]attemptRow, len(d.Attempts))
	for i := range d.Attempts {
		rows[i] = c.jobAttemptRow(&d.Attempts[i])
	}
	for i := range d.Steps {
		d.Steps[i].Result = json.RawMessage(redact.JSON(d.Type, d.Steps[i].Result, secrets...))
	}
	open := d.State == models.JobPending || d.State == models.JobLeased
	var older pager
	if d.Older > 0 {
		older.Next = r.here("before", strconv.FormatInt(d.Older, 10))
	}
	if h.Before > 0 {
		older.First = r.here("before", "")
	}
	line := drawAttempts(rows, enqueued(&d, h), runningSince(d.State, d.AttemptStartedAt), dueNext(d.State, dueTime(&d.Job)), r.now)
	line.drawSteps(d.Steps, r.now)
	return &view{
		Title: "Job " + d.Type, Template: "job", Nav: "jobs", Live: open, Trail: []trail{{"Jobs", r.link("jobs")}},
		Data: map[string]any{
			"Job": d.Job, "Fleet": fleets[answers.Text(d.Queue)], "Owner": d.Owner, "Trace": traceID(d.TraceParent),
			"Links": d.Links, "WaitsFor": d.WaitsFor, "Waits": d.Waits(), "Story": told, "Steps": d.Steps,
			"Error": redact.Text(answers.ErrorText(d.LastError)), "Key": key, "Opened": key != "" && encryption.KeyOf(d.Payload) == "",
			"Attempts": rows, "AttemptRows": d.AttemptRows,
			"Timeline": line, "Pager": older,
			"Payload": redact.JSON(d.Type, d.Payload, secrets...), "Result": redact.JSON(d.Type, d.Result, secrets...),
			"Progress": redact.JSON(d.Type, d.Progress, secrets...),
			"Edits":    editsShown(&d.Job, secrets), "Editable": editable(&d.Job) && r.Token.CheckType(d.Type, c.TypeName) == nil,
			"Choices": jobChoices(&d.Job), "Priority": answers.Priority(d.Priority),
		},
	}, nil
}

// enqueued is when a job was enqueued, if the page shows its first attempt.
func enqueued(d *listing.JobDetail, h listing.HistoryPage) *time.Time {
	if d.Older > 0 || h.Before > 0 {
		return nil
	}
	return &d.CreatedAt
}

// runningSince is when the running attempt began; nil: none runs.
func runningSince(state models.JobState, started *time.Time) *time.Time {
	if state != models.JobLeased {
		return nil
	}
	return started
}

// dueTime is when a job is due, or is to be due when it need not wait for others any more.
func dueTime(j *models.Job) time.Time {
	if j.Waits() {
		return j.FirstReadyAt
	}
	return j.ReadyAt
}

// dueNext is when a pending job is due.
func dueNext(state models.JobState, ready time.Time) *time.Time {
	if state != models.JobPending {
		return nil
	}
	return &ready
}

// choice is an action that a job's page offers, with what it leads to.
type choice struct {
	Action, Label, Says, Tone string
	// Mode is that of a retry; Minutes has the page ask for a delay.
	Mode    queue.RetryMode
	Minutes bool
	// Hidden are further fields of the form.
	Hidden []field
}

// jobChoices are the actions that make sense for a job as it is.
func jobChoices(j *models.Job) []choice {
	at := Root + "jobs/" + url.PathEscape(j.ID)
	counted := "The " + plural(j.RunCount, "attempt stays", "attempts stay") + " counted, and at least one more is made."
	if j.RunCount == 0 {
		counted = "It was not tried yet."
	}
	retry := []choice{
		{
			Action: at + "/retry", Label: "Retry now", Says: "It is due at once. " + counted, Tone: "", Mode: queue.RetryNow,
			Minutes: false,
		},
		{
			Action: at + "/retry", Label: "Retry later", Says: "It is due after this many minutes. " + counted, Tone: "quiet",
			Mode: queue.RetryLater, Minutes: true,
		},
		{
			Action: at + "/retry", Label: "Retry from the first attempt",
			Says: "It is due at once, as if it had never been tried: attempts are counted from 0, the last error is " +
				"cleared, and steps are forgotten. The attempts below stay.", Tone: "quiet", Mode: queue.RetryReset, Minutes: false,
		},
	}
	cancel := choice{
		Action: at + "/cancel", Label: "Cancel", Tone: "danger",
		Says: "It is not worked any more. It stays listed as cancelled, and can be retried.",
	}
	switch {
	case j.State == models.JobPending || j.State == models.JobFailed:
		return append(retry, cancel)
	case j.State == models.JobCancelled:
		return retry
	case j.State == models.JobLeased && j.CancelRequested:
		return []choice{{
			Action: at + "/retry", Label: "Withdraw the cancellation",
			Says: "The running attempt goes on, or, where it was interrupted already, another one follows it.", Tone: "quiet",
			Mode: queue.RetryNow, Minutes: false,
		}}
	case j.State == models.JobLeased:
		cancel.Says = "An attempt that runs is interrupted within seconds and commits nothing. What its handler did " +
			"outside of the database stays done."
		return []choice{cancel}
	}
	return nil
}

// maxRetryMinutes is the longest delay of a retry: a year.
const maxRetryMinutes = 365 * 24 * 60

// retryMode reads how jobs are to be tried again.
func retryMode(r *request) (queue.RetryMode, time.Duration, error) {
	mode := queue.RetryMode(r.PostFormValue("mode"))
	if mode != queue.RetryLater {
		return mode, 0, nil
	}
	minutes, err := strconv.ParseFloat(r.PostFormValue("minutes"), 64)
	if err != nil || !(minutes > 0 && minutes <= maxRetryMinutes) {
		return mode, 0, store.Invalid("the minutes are %q: give a number from 1 to %d", r.PostFormValue("minutes"),
			maxRetryMinutes)
	}
	return mode, time.Duration(minutes * float64(time.Minute)), nil
}

// ownJob returns the job's id and its page, or ErrJobNotFound for one that the token does not
// reach. The action of the context is about the job either way.
func (c *console) ownJob(ctx context.Context, r *request) (id, page string, err error) {
	org, err := r.reach("")
	if err != nil {
		return "", "", err
	}
	id = r.PathValue("id")
	actions.About(ctx, org, id, nil)
	if org, err = c.Listing.OrganizationOfJob(ctx, org, id); err == nil {
		actions.About(ctx, org, "", nil)
	}
	return id, r.link("jobs/" + url.PathEscape(id)), err
}

func (c *console) retryJob(ctx context.Context, r *request) (done, error) {
	id, page, err := c.ownJob(ctx, r)
	if err != nil {
		return done{}, err
	}
	mode, delay, err := retryMode(r)
	if err != nil {
		return done{}, err
	}
	answer, err := queue.RetryJob(ctx, c.Pool, id, queue.RetryOptions{Mode: mode, Delay: delay})
	return done{
		To: page, Text: retried(answer), Subject: id,
		Details: map[string]any{"mode": mode, "delay_seconds": delay.Seconds()},
	}, err
}

// retried says what a retry led to.
func retried(answer queue.Response) string {
	switch answer.Result {
	case queue.Requeued:
		return "The job is pending again."
	case queue.Rescheduled:
		return "The job's time was changed."
	case queue.Coalesced:
		return "The running attempt goes on; its cancellation was withdrawn, or another one follows it."
	default:
		return "Nothing was changed: " + cmp.Or(answer.Reason, "the job runs already") + "."
	}
}

func (c *console) cancelJob(ctx context.Context, r *request) (done, error) {
	id, page, err := c.ownJob(ctx, r)
	if err != nil {
		return done{}, err
	}
	answer, err := queue.CancelJob(ctx, c.Pool, id)
	return done{To: page, Text: cancelled(answer), Subject: id}, err
}

// cancelled says what a cancellation led to.
func cancelled(answer queue.Response) string {
	switch answer.Result {
	case queue.Cancelled:
		return "The job is cancelled."
	case queue.Cancelling:
		return "The job is cancelled after its running attempt, which commits nothing."
	default:
		return "Nothing was changed: " + cmp.Or(answer.Reason, "the job is cancelled already") + "."
	}
}
