package queue

import (
	"cmp"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// MaxIDBytes is how long an organization or document id may be.
const MaxIDBytes = 255

// Kind says which queue an event is about.
type Kind = models.Kind

// The kinds of queue: documents that are posted, background jobs and tasks.
const (
	KindAccounting = models.KindAccounting
	KindJobs       = models.KindJobs
	KindTasks      = models.KindTasks
)

// Priority orders due jobs; the zero value is Normal.
type Priority = models.Priority

// The priorities: High jobs, for instance those that a person waits for, are leased before Normal
// and Low ones.
const (
	High   = models.PriorityHigh
	Normal = models.PriorityNormal
	Low    = models.PriorityLow
)

// Result says in a word what a request did.
type Result string

const (
	// Received: the callback came for the first time.
	Received Result = "received"
	// Enqueued: there was no such job.
	Enqueued Result = "enqueued"
	// Coalesced: the job waits or runs, and the request was added to it.
	Coalesced Result = "coalesced"
	// Requeued: the job had ended and is pending again.
	Requeued Result = "requeued"
	// Rescheduled: the pending job is due at another time.
	Rescheduled Result = "rescheduled"
	// Edited: the job has another payload.
	Edited Result = "edited"
	// Replaced: the debounced job that waits has a new payload, and its time anew.
	Replaced Result = "replaced"
	// Unchanged: an earlier request was for the same, or for a newer version.
	Unchanged Result = "unchanged"
	// Skipped: a firing of a schedule enqueued nothing, because the job of an earlier firing waits or
	// runs.
	Skipped Result = "skipped"
	// Cancelled: the job will not run.
	Cancelled Result = "cancelled"
	// Cancelling: the job is cancelled after its running attempt, which commits nothing.
	Cancelling Result = "cancelling"
)

// Response is what a request led to.
type Response struct {
	// JobID is the same for all versions of a document.
	JobID  string
	Result Result
	// Reason says, for people, why RetryJob, EditJob and CancelJob changed nothing (Unchanged): for a
	// unique job it names the one that is open.
	Reason string
}

// MaxMany is how many jobs or tasks EnqueueAccountingJobs, EnqueueJobs and EnqueueTasks write in one
// statement; more are split, in the same transaction if q is one.
const MaxMany = 50_000

func checkIDs(org, document string) error {
	switch {
	case org == "" || document == "":
		return ErrEmptyID
	case len(org) > MaxIDBytes || len(document) > MaxIDBytes:
		return ErrIDTooLong
	}
	return cmp.Or(checkText("organization id", org), checkText("document id", document))
}

// checkText returns ErrInvalidText for what PostgreSQL cannot hold.
func checkText(what, s string) error {
	if !store.ValidText(s) {
		return fmt.Errorf("%w: correct the %s", ErrInvalidText, what)
	}
	return nil
}

// checkTime returns ErrInvalidTime for a time that no row can have. The zero time is now.
func checkTime(t time.Time) error {
	if year := t.UTC().Year(); !t.IsZero() && (year < 1 || year > 9999) {
		return fmt.Errorf("%w, not %s", ErrInvalidTime, t)
	}
	return nil
}

func validPriority(p Priority) bool { return p == 0 || (p >= High && p <= Low) }

func response(r store.Requested) Response {
	return Response{JobID: r.JobID, Result: Result(r.Result), Reason: r.Reason}
}
