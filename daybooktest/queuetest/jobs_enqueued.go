package queuetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Job is a background job as a test sees it.
type Job[P queue.Payload] struct {
	ID    string
	OrgID string
	// Type is the name under which it was enqueued.
	Type    string
	Payload P
	// IdempotencyKey is "" when it was enqueued without one.
	IdempotencyKey string
	Priority       queue.Priority
	// MaxAttempts is 0 when the policy of the type's handler says.
	MaxAttempts int
	// Links are in the order of kind and id.
	Links []queue.Link
	// Unique says that it is to be the only open job of its organization with its type and payload.
	Unique bool

	State models.JobState
	// ReadyAt is when it is due, or was due last.
	ReadyAt time.Time
	// Attempts counts those that were made.
	Attempts int
	// ErrorCode and Error are those of the last attempt that did not complete it; "" when there was
	// none.
	ErrorCode models.ErrorCode
	Error     string
	// Result is nil when the handler left none.
	Result json.RawMessage
}

// EnqueuedJobs returns the jobs of P's type for which every match is true, in the order in which
// they were enqueued, in any state. A transaction also sees what it has enqueued itself, a pool
// only what is committed. If P is queue.RawPayload, it finds jobs of every type.
func EnqueuedJobs[P queue.Payload](tb testing.TB, q queue.Querier, match ...func(Job[P]) bool) []Job[P] {
	tb.Helper()
	requireQuerier(tb, q)
	var zero P
	rows, err := store.EnqueuedRows(tb.Context(), q, zero.JobType(), "")
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	var found []Job[P]
	for _, r := range rows {
		job, err := decode[P](r)
		if err != nil {
			tb.Fatalf("queuetest: job %s of type %s: its payload is no %T: %v", r.ID, r.Type, zero, err)
		}
		if matches(job, match) {
			found = append(found, job)
		}
	}
	return found
}

// RequireJobEnqueued returns the one job that EnqueuedJobs finds. Unless there is exactly one, it
// fails the test and lists all jobs.
func RequireJobEnqueued[P queue.Payload](tb testing.TB, q queue.Querier, match ...func(Job[P]) bool) Job[P] {
	tb.Helper()
	found := EnqueuedJobs(tb, q, match...)
	if len(found) != 1 {
		var zero P
		tb.Fatalf("queuetest: want one job%s, found %d; %s", wanted(zero.JobType(), match), len(found), inventory(tb, q))
	}
	return found[0]
}

// RequireJobNotEnqueued fails the test and lists all jobs, when EnqueuedJobs finds one.
func RequireJobNotEnqueued[P queue.Payload](tb testing.TB, q queue.Querier, match ...func(Job[P]) bool) {
	tb.Helper()
	if found := EnqueuedJobs(tb, q, match...); len(found) > 0 {
		var zero P
		tb.Fatalf("queuetest: want no job%s, found %d; %s", wanted(zero.JobType(), match), len(found), inventory(tb, q))
	}
}

// matches reports whether every match is true of what was found.
func matches[T any](found T, match []func(T) bool) bool {
	for _, m := range match {
		if !m(found) {
			return false
		}
	}
	return true
}

// wanted says what was looked for.
func wanted[T any](typeName string, match []func(T) bool) string {
	text := ""
	if typeName != "" {
		text = " of type " + typeName
	}
	if len(match) > 0 {
		text += " that matches"
	}
	return text
}

func decode[P queue.Payload](r store.EnqueuedRow) (Job[P], error) {
	job := Job[P]{
		ID: r.ID, OrgID: r.OrgID, Type: r.Type, IdempotencyKey: r.Key, Priority: queue.Priority(r.Priority),
		MaxAttempts: r.MaxAttempts,
		Unique:      r.Unique, State: models.JobState(r.State), ReadyAt: r.ReadyAt, Attempts: r.RunCount,
		ErrorCode: models.ErrorCode(r.Code), Error: r.Error,
	}
	if r.Result != "" {
		job.Result = json.RawMessage(r.Result)
	}
	for _, l := range r.Links {
		job.Links = append(job.Links, queue.Link{Kind: l.Kind, ID: l.ID})
	}
	if raw, ok := any(&job.Payload).(*queue.RawPayload); ok {
		*raw = queue.RawPayload{Type: r.Type, Data: json.RawMessage(r.Payload)}
		return job, nil
	}
	return job, json.Unmarshal([]byte(r.Payload), &job.Payload)
}

// listed is how many jobs a failure lists.
const listed = 30

// inventory lists the jobs that are there.
func inventory(tb testing.TB, q queue.Querier) string {
	tb.Helper()
	rows, err := store.EnqueuedRows(tb.Context(), q, "", "")
	if err != nil {
		return err.Error()
	}
	return listing(rows)
}

func listing(rows []store.EnqueuedRow) string {
	if len(rows) == 0 {
		return "there are no jobs at all"
	}
	var b strings.Builder
	b.WriteString("the jobs that are there:")
	for i, r := range rows {
		if i == listed {
			fmt.Fprintf(&b, "\n  and %d more", len(rows)-listed)
			break
		}
		fmt.Fprintf(&b, "\n  %s  org %s  %s", r.Type, r.OrgID, describe(r.State, r.ReadyAt))
		if r.Key != "" {
			fmt.Fprintf(&b, "  key %s", r.Key)
		}
		if r.Code != "" {
			fmt.Fprintf(&b, "  %s", failure(r.Code, r.Error))
		}
		fmt.Fprintf(&b, "  %s", shorten(r.Payload))
	}
	return b.String()
}

func describe(state string, readyAt time.Time) string {
	if wait := time.Until(readyAt).Round(time.Second); state == string(models.JobPending) && wait > 0 {
		return state + " in " + wait.String()
	}
	return state
}

func failure(code, message string) string {
	first, _, _ := strings.Cut(message, "\n")
	return code + " (" + shorten(cmp.Or(first, "no message")) + ")"
}

// shown is how many characters of a text a failure shows.
const shown = 200

func shorten(s string) string {
	if runes := []rune(s); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}
	return s
}
