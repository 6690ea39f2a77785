package console

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
)

// attemptRow is an attempt as a page shows it.
type attemptRow struct {
	Number int
	// Version is the document version, of an accounting job.
	Version int64
	// Times is how many attempts in a row the row stands for; First is when the first of them began.
	Times   int
	First   *time.Time
	Outcome models.Outcome
	Started time.Time
	Took    time.Duration
	// Code and Error say what went wrong; secrets in Error are masked.
	Code, Error, Worker string
	// RunID is the run of the workflow, Run the address of its page; empty: not known.
	RunID, Run string
}

func (c *console) attemptRow(a *models.Attempt) attemptRow {
	return attemptRow{
		Number: a.Attempt, Version: a.Version, Times: a.Times, First: a.FirstStartedAt, Outcome: a.Outcome,
		Started: a.StartedAt, Took: a.EndedAt.Sub(a.StartedAt),
		Code: answers.Text(a.ErrorCode), Error: redact.Text(answers.ErrorText(a.Error)), Worker: a.Worker,
		RunID: a.WorkflowRunID, Run: c.runAddress(a.WorkflowRunID),
	}
}

func (c *console) jobAttemptRow(a *models.JobAttempt) attemptRow {
	return c.attemptRow(&models.Attempt{
		Attempt: a.Attempt, Times: a.Times, FirstStartedAt: a.FirstStartedAt, Outcome: a.Outcome, StartedAt: a.StartedAt,
		EndedAt:   a.EndedAt,
		ErrorCode: a.ErrorCode, Error: a.Error, Worker: a.Worker, WorkflowRunID: a.WorkflowRunID,
	})
}

// runAddress is the address of a run's page in Temporal's own UI; empty: the UI or the run is not
// known.
func (c *console) runAddress(run string) string {
	if c.TemporalUI == "" || run == "" {
		return ""
	}
	return c.TemporalUI + "/namespaces/" + url.PathEscape(c.namespace()) + "/workflows?query=" +
		url.QueryEscape(`RunId="`+strings.ReplaceAll(run, `"`, "")+`"`)
}

// traceID is the id of the trace that a traceparent names; empty: it names none.
func traceID(parent *string) string {
	if parts := strings.Split(answers.Text(parent), "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

// bar is an attempt on the time line, in thousandths of its width.
type bar struct {
	X, Width float64
	// Class is the outcome, or "next" for when the job is due, or "now" for an attempt that runs.
	Class, Title string
}

// timeline is a drawing of attempts from From to To.
type timeline struct {
	From, To time.Time
	// Says is the drawing in words.
	Says string
	Bars []bar
}

// barWidth is the least width of a bar, in thousandths.
const barWidth = 6

// drawAttempts draws attempts, the newest first as they are listed, the running one, which began at
// running, and when the job is due. since is when the drawing begins: when the job was enqueued.
// since, running and due are nil when there is none; then it begins with the first attempt.
func drawAttempts(rows []attemptRow, since, running, due *time.Time, now time.Time) *timeline {
	if len(rows) == 0 {
		return nil
	}
	oldest, newest := rows[len(rows)-1], rows[0]
	t := &timeline{From: oldest.Started, To: newest.Started.Add(newest.Took)}
	if oldest.First != nil {
		t.From = *oldest.First
	}
	if since != nil && since.Before(t.From) {
		t.From = *since
	}
	if running != nil {
		t.To = now
	}
	if due != nil && due.After(t.To) {
		t.To = *due
	}
	whole := max(t.To.Sub(t.From).Seconds(), 0.001)
	place := func(at time.Time) float64 {
		return math.Round(min(max(at.Sub(t.From).Seconds()/whole*1000, 0), 1000-barWidth)*10) / 10
	}
	add := func(from, to time.Time, class, title string) {
		x := place(from)
		width := math.Round(min(max(to.Sub(from).Seconds()/whole*1000, barWidth), 1000-x)*10) / 10
		t.Bars = append(t.Bars, bar{x, width, class, title})
	}
	outcomes := map[models.Outcome]int{}
	for _, r := range slices.Backward(rows) {
		outcomes[r.Outcome] += max(r.Times, 1)
		from := r.Started
		title := fmt.Sprintf("Attempt %d: %s, took %s", r.Number, r.Outcome, phrase.Duration(r.Took))
		if r.First != nil {
			from = *r.First
			title = fmt.Sprintf("%d attempts: %s", r.Times, r.Outcome)
		}
		if r.Code != "" {
			title += ", " + r.Code
		}
		add(from, r.Started.Add(r.Took), string(r.Outcome), title)
	}
	if running != nil {
		add(*running, now, "now", "The running attempt")
	}
	if due != nil {
		add(*due, *due, "next", "Due "+ago(now, *due))
	}
	t.Says = sayOutcomes(outcomes) + " in " + phrase.Duration(t.To.Sub(t.From))
	return t
}

// sayOutcomes counts attempts by their outcome, in words.
func sayOutcomes(n map[models.Outcome]int) string {
	var parts []string
	for _, o := range []models.Outcome{
		models.OutcomeCompleted, models.OutcomeRetried, models.OutcomeRescheduled, models.OutcomeFailed,
		models.OutcomeCancelled, models.OutcomeLost,
	} {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	return "Attempts: " + strings.Join(parts, ", ")
}
