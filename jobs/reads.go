package jobs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// EarlierAttempt is an attempt at a job that has ended, as the log has it.
type EarlierAttempt struct {
	// Number is the attempt's, from 1. An attempt that was put off has the number of the one that follows.
	Number  int
	Outcome models.Outcome
	// Code and Error say why, for every outcome but completed.
	Code  models.ErrorCode
	Error string
	// StartedAt and EndedAt are those of the last of Times attempts in a row with the same result.
	StartedAt, EndedAt time.Time
	Times              int
}

// reads is where a handler's questions are answered. Time in which the database holds up the answer is not the handler's.
type reads struct{ q store.Querier }

var errNoReads = errors.New("the job is not worked by a worker: there is no database to read from")

func (r reads) links(ctx context.Context, id string) ([]queue.Link, error) {
	if r.q == nil {
		return nil, errNoReads
	}
	var links []models.JobLink
	err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) (err error) {
		links, err = store.JobLinks(ctx, r.q, id)
		return err
	})
	out := make([]queue.Link, len(links))
	for i, l := range links {
		out[i] = queue.Link{Kind: l.Kind, ID: l.ID}
	}
	return out, err
}

func (r reads) attempts(ctx context.Context, id string) ([]EarlierAttempt, error) {
	if r.q == nil {
		return nil, errNoReads
	}
	var logged []store.LoggedAttempt
	err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) (err error) {
		logged, err = store.LoggedAttempts(ctx, r.q, id, mostEarlier)
		return err
	})
	out := make([]EarlierAttempt, len(logged))
	for i, a := range logged {
		out[i] = EarlierAttempt{
			Number: a.Attempt, Outcome: a.Outcome, Code: a.Code, Error: a.Error, StartedAt: a.StartedAt, EndedAt: a.EndedAt, Times: a.Times,
		}
	}
	return out, err
}

// AwaitedJob is a job that another one has waited for.
type AwaitedJob struct {
	ID string
	// State is the one in which it ended: completed, failed or cancelled; empty when it was Removed before its end.
	State   models.JobState
	Removed bool
}

func (r reads) awaited(ctx context.Context, id string) ([]AwaitedJob, error) {
	if r.q == nil {
		return nil, errNoReads
	}
	var ended []store.AwaitedJob
	err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) (err error) {
		ended, err = store.AwaitedJobs(ctx, r.q, id)
		return err
	})
	out := make([]AwaitedJob, len(ended))
	for i, a := range ended {
		if out[i] = (AwaitedJob{ID: a.ID, State: models.JobState(a.EndedAs)}); a.EndedAs == "removed" {
			out[i].State, out[i].Removed = "", true
		}
	}
	return out, err
}

// mostEarlier is how many earlier attempts a handler is told of.
const mostEarlier = 100

// info is a job as middleware sees it.
func (t *registered) info(job store.Job, r reads) *Info {
	return &Info{
		ID: job.ID, OrgID: job.OrgID, Type: job.Type, Owner: t.policy.Owner, Attempt: job.Attempt, MaxAttempts: t.maxAttempts(job), Priority: models.Priority(job.Priority),
		IdempotencyKey: cmp.Or(job.Key, job.ID), Payload: job.Payload, EnqueuedAt: job.EnqueuedAt, reads: r,
	}
}

// reads is where the handlers' questions are answered.
func (r working) reads() reads {
	if r.pool == nil {
		return reads{}
	}
	return reads{r.pool}
}
