package inspect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// JobFilter says which background jobs are meant. The zero value of each field means any.
type JobFilter struct {
	OrgID string
	State models.JobState
	Type  string
	// Code is the last error's.
	Code models.ErrorCode
	// Since and Until bound when the job failed if State is models.JobFailed, and when it was
	// enqueued otherwise: from Since on, before Until.
	Since, Until time.Time
	// LinkKind and LinkID are of something that the job is about; either may be empty.
	LinkKind, LinkID string
	// IdempotencyKey is the one that it was enqueued with.
	IdempotencyKey string
	// Queue is the named queue; "default" is the one that jobs without a queue are in.
	Queue string
	// Waits is what the job waits for.
	Waits Waits
}

// Waits says what a job waits for that is not due.
type Waits string

const (
	// WaitsForTurn: an earlier job of its sequence has not ended.
	WaitsForTurn Waits = listing.WaitsForTurn
	// WaitsForJobs: jobs that it was enqueued after (queue.JobOptions.After) have not ended.
	WaitsForJobs Waits = listing.WaitsForJobs
	// WaitsForCallback: an answer from outside has not come.
	WaitsForCallback Waits = listing.WaitsForCallback
	// WaitsForLimit: the jobs of its limit's key that may run do, or their rate is used up.
	WaitsForLimit Waits = listing.WaitsForLimit
)

// WaitsFor is one thing that a job waits for.
type WaitsFor struct {
	// What is "turn", "job", "callback" or "limit".
	What string
	// ID is that of the other job, for a turn that of the job which has it, the name of the callback,
	// or the key of the limit.
	ID string
	// State is that of the other job; empty: it was removed, or there is none.
	State models.JobState
	// Until is the deadline of a callback.
	Until *time.Time
	// Of a limit: Queue is the named queue whose limit it is; empty: that of the job's type. AtWork jobs
	// of the key run or are about to, of Parallel that may, and Ahead stand before this one in line, each
	// counted up to 1,000. Rate attempts begin in RateSeconds at most. Parallel or Rate 0: any number.
	Queue                   string
	AtWork, Parallel, Ahead int
	Rate                    int
	RateSeconds             float64
}

// JobPage is a part of a list of background jobs.
type JobPage struct {
	// Jobs are without payload and result, which may be large; Job reads them.
	Jobs []models.Job
	// Links are those of Jobs, by the job's id.
	Links map[string][]models.JobLink
	// Next is the cursor of the next page; empty: this is the last one.
	Next string
}

// Jobs lists background jobs: dead letters (State is models.JobFailed) by when they failed, all
// others by when they were enqueued, the last one first.
//
// Errors: ErrInvalid.
func (r *Reader) Jobs(ctx context.Context, f JobFilter, p Page) (JobPage, error) {
	limit, err := r.limit(p)
	if err != nil {
		return JobPage{}, err
	}
	page, err := r.listing.Jobs(ctx, listing.JobFilter{
		OrgID: f.OrgID, State: f.State, Type: f.Type, Code: f.Code, Since: f.Since, Until: f.Until, Key: f.IdempotencyKey,
		Link: models.JobLink{Kind: f.LinkKind, ID: f.LinkID}, Queue: f.Queue, Waits: string(f.Waits),
	}, limit, p.Cursor)
	return JobPage{Jobs: page.Jobs, Links: page.Links, Next: page.Next}, err
}

// JobDetail is a background job with all that is known of it.
type JobDetail struct {
	models.Job
	// Owner owns the type, as a worker put it on record; empty: none has said.
	Owner string
	Links []models.JobLink
	// Attempts are the last ones, the newest first, DefaultLimit at most. AttemptRows counts all rows
	// of the history, each of which may stand for several attempts with the same end.
	Attempts    []models.JobAttempt
	AttemptRows int64
	// WaitsFor is what the job waits for, 100 jobs at most.
	WaitsFor []WaitsFor
	// Steps are those whose results are kept, in the order in which they were begun.
	Steps []Step
}

// Step is a step of a job, whose result is kept for the attempts after it (jobs.Step).
type Step struct {
	Name string
	// Position is the how many-th step of its attempt it was, from 1, Attempt the one that kept it
	// last.
	Position, Attempt int
	// Result is what it returned, as JSON, or where its loop stands. Done: the loop has ended, or it is
	// none.
	Result json.RawMessage
	Done   bool
	// Times is how often it was kept: once, or once for each round of a loop.
	Times             int
	StartedAt, KeptAt time.Time
}

// Job reads a background job by its id: of an organization, or of any when org is empty. Errors:
// ErrJobNotFound.
func (r *Reader) Job(ctx context.Context, org, id string) (JobDetail, error) {
	if err := r.made(); err != nil {
		return JobDetail{}, err
	}
	d, err := r.listing.Job(ctx, org, id, listing.HistoryPage{Limit: DefaultLimit})
	waits := make([]WaitsFor, len(d.WaitsFor))
	for i, w := range d.WaitsFor {
		waits[i] = WaitsFor(w)
	}
	steps := make([]Step, len(d.Steps))
	for i, s := range d.Steps {
		steps[i] = Step{s.Name, s.Position, s.Attempt, s.Result, s.Done, s.Times, s.StartedAt, s.KeptAt}
	}
	return JobDetail{
		Job: d.Job, Owner: d.Owner, Links: d.Links, Attempts: d.Attempts, AttemptRows: d.AttemptRows,
		WaitsFor: waits, Steps: steps,
	}, err
}
