package console

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// story says why a job is where it is and what comes next.
type story struct {
	// Says is the state in words; Next is what happens next, Todo what a person may do.
	Says, Next, Todo string
	// Mend leads to the page where the cause is mended; nil: it is mended elsewhere.
	Mend *trail
}

// standing is what the stories of background jobs and accounting jobs are told of.
type standing struct {
	kind, org, jobType string
	state              models.JobState
	attempts           int
	max                *int
	ready              time.Time
	attempted          *time.Time
	code               models.ErrorCode
	worker             string
	working            bool
	detached           bool
	cancel             bool
	// waits: for its turn or for other jobs.
	waits bool
	// inLine: the time has come, and the limit of its key is reached.
	inLine bool
	// queue is the named queue; empty: none.
	queue string
	// minVersion is the lowest version of the type's handler that may work it; 0: any.
	minVersion int
}

func standingOfJob(j *models.Job) standing {
	return standing{
		kind: "jobs", org: j.OrgID, jobType: j.Type, state: j.State, attempts: j.RunCount, max: j.MaxAttempts,
		ready: j.ReadyAt, attempted: j.LastAttemptedAt,
		code: models.ErrorCode(answers.Text(j.LastErrorCode)), worker: answers.Text(j.Worker), working: j.Working,
		detached: j.Detached, cancel: j.CancelRequested, waits: j.Waits(), inLine: j.InLine(),
		queue: answers.Text(j.Queue), minVersion: store.Value(j.MinVersion),
	}
}

func standingOfAccounting(j *models.AccountingJob) standing {
	return standing{
		kind: "accounting", org: j.OrgID, state: j.State, attempts: j.RunCount, ready: j.ReadyAt,
		attempted: j.LastAttemptedAt,
		code:      models.ErrorCode(answers.Text(j.LastErrorCode)), worker: answers.Text(j.Worker), working: j.Working,
		detached: j.Detached, cancel: j.CancelRequested,
	}
}

// tell says why a job is where it is.
func (c *console) tell(ctx context.Context, r *request, j standing) (story, error) {
	var s story
	switch j.state {
	case models.JobPending:
		return c.tellPending(ctx, r, j)
	case models.JobLeased:
		s = tellLeased(r, j)
	case models.JobCompleted:
		s.Says = "It is completed: what it did is committed."
	case models.JobCancelled:
		s.Says, s.Todo = "It is cancelled and is not worked.", "Retry it if it is wanted after all."
	case models.JobFailed:
		s.Says = fmt.Sprintf("It is a dead letter after %s: it is not tried again by itself.",
			plural(j.attempts, "attempt", "attempts"))
		if models.JobErrorIsFinal(j.code) && j.kind == "jobs" {
			s.Says = "It is a dead letter: with this error trying again cannot help by itself."
		}
	}
	addReason(&s, j)
	return s, nil
}

// addReason says what the last error means, and where its cause is mended.
func addReason(s *story, j standing) {
	why, known := reasons[j.code]
	if !known || j.state == models.JobCompleted || j.state == models.JobCancelled {
		return
	}
	s.Next += why.Says
	if j.state == models.JobFailed {
		s.Todo = why.Todo
		if why.Path != "" {
			s.Mend = &trail{Name: why.Name, Address: address(j.org, why.Path)}
		}
	}
}

func tellLeased(r *request, j standing) story {
	var s story
	switch stale := j.attempted != nil && r.now.Sub(*j.attempted) > store.StaleAfter; {
	case stale:
		s.Says = "Its lease is stale: its worker has not renewed it for " + phrase.Duration(r.now.Sub(*j.attempted)) + "."
		s.Next = "It is reclaimed and worked elsewhere as soon as a worker looks. "
		s.Todo = "If it stays so, no worker runs: `daybook doctor` says what is wrong."
	case !j.working:
		s.Says = "A worker has leased it; its handler has not begun."
	default:
		s.Says = fmt.Sprintf("A worker works on it: attempt %d.", j.attempts)
	}
	if j.detached {
		s.Next += "It lasts longer than its turn, so that its worker holds it by itself. "
	}
	if j.cancel {
		s.Next += "Its cancellation was asked for: the running attempt is the last and commits nothing. "
	}
	return s
}

func (c *console) tellPending(ctx context.Context, r *request, j standing) (story, error) {
	var s story
	if j.waits {
		s.Says = "It waits for its turn or for other jobs, which the page names."
		return s, nil
	}
	switch {
	case j.inLine:
		s.Says = "It has been due for " + phrase.Duration(r.now.Sub(j.ready)) +
			" and waits for the limit of its key, which the page names."
	case j.ready.After(r.now) && j.attempts == 0:
		s.Says = "It waits for its time, " + ago(r.now, j.ready) + "."
	case j.ready.After(r.now):
		s.Says = fmt.Sprintf("It is tried again %s, after %s.", ago(r.now, j.ready),
			plural(j.attempts, "attempt", "attempts"))
	default:
		s.Says = "It has been due for " + phrase.Duration(r.now.Sub(j.ready)) + " and waits for a worker."
	}
	h, err := c.Listing.Hindrance(ctx, j.kind, j.org, j.jobType, j.queue, j.minVersion)
	if err != nil {
		return s, err
	}
	addReason(&s, j)
	hindered(&s, h, j, r.now)
	if s.Mend != nil && s.Mend.Name == "Queues" && r.Token.OrgID != nil {
		s.Mend = nil // the page is for tokens of all organizations
	}
	return s, nil
}

// hindered says what keeps a pending job from being worked.
func hindered(s *story, h listing.Hindrance, j standing, now time.Time) {
	switch {
	case h.PausedAt != nil:
		s.Todo = "Its organization is paused since " + phrase.Duration(now.Sub(*h.PausedAt)) + ": resume it, or wait."
		s.Mend = &trail{Name: "Organizations", Address: address(j.org, "organizations")}
	case h.QueuePausedAt != nil:
		s.Todo = "Its queue " + j.queue + " is paused since " + phrase.Duration(now.Sub(*h.QueuePausedAt)) +
			": resume it, or wait."
		s.Mend = &trail{Name: "Queues", Address: address("", joinPath("queues", j.queue))}
	case h.MaxInFlight != nil && h.InFlight >= *h.MaxInFlight:
		s.Todo = fmt.Sprintf("Its organization is at its cap: %d of its jobs are worked, and no more are allowed.",
			h.InFlight)
		s.Mend = &trail{Name: "Organizations", Address: address(j.org, "organizations")}
	case h.RateSpent && !j.ready.After(now):
		s.Todo = "Its organization is at its rate: it begins when that allows the next job."
		s.Mend = &trail{Name: "Organizations", Address: address(j.org, "organizations")}
	case j.ready.After(now):
	case j.kind == "jobs" && h.Workers == 0 && h.Fleet != "":
		s.Todo = "No worker of the fleet " + h.Fleet + ", which works its queue " + j.queue +
			", runs: start one (`DAYBOOK_FLEET=" + h.Fleet + " daybook worker`), or let another fleet work the queue."
		s.Mend = &trail{Name: "Queues", Address: address("", joinPath("queues", j.queue))}
	case j.kind == "jobs" && h.Workers == 0:
		s.Todo = "No worker of background jobs runs: start one (`daybook worker`), or look why it does not work " +
			"(`daybook doctor`)."
		s.Mend = &trail{Name: "Workers", Address: address("", "workers")}
	case j.kind == "jobs" && h.Handlers == 0 && j.minVersion > 0:
		s.Todo = fmt.Sprintf("No worker that runs has version %d of the handler for %s: start one that has.", j.minVersion,
			j.jobType)
		s.Mend = &trail{Name: "Workers", Address: address("", "workers")}
	case j.kind == "jobs" && h.Handlers == 0:
		s.Todo = "No worker that runs has a handler for " + j.jobType + ": start one that registers it."
		s.Mend = &trail{Name: "Workers", Address: address("", "workers")}
	case now.Sub(j.ready) > time.Minute && !j.inLine:
		s.Todo = "It waits longer than a minute: the workers are busy or away. `daybook doctor` says which."
	}
}
