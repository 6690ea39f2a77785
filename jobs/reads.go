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
	// Number is the attempt's, from 1. An attempt that was put off has the number of the one that
	// follows.
	Number  int
	Outcome models.Outcome
	// Code and Error say why, for every outcome but completed.
	Code  models.ErrorCode
	Error string
	// StartedAt and EndedAt are those of the last of Times attempts in a row with the same result.
	StartedAt, EndedAt time.Time
	Times              int
}

// reads is where a handler's questions are answered. Time in which the database holds up the answer
// is not the handler's.
type reads struct {
	q       store.Querier
	private *private
}

var errNoReads = errors.New("the job is not worked by a worker: there is no database to read from")

// ask returns what read finds about the job with an id, as an application sees it.
func ask[S, T any](ctx context.Context, r reads, id string,
	read func(ctx context.Context, q store.Querier, id string) ([]S, error), seen func(S) T,
) ([]T, error) {
	if r.q == nil {
		return nil, errNoReads
	}
	var found []S
	err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) (err error) {
		found, err = read(ctx, r.q, id)
		return err
	})
	out := make([]T, len(found))
	for i := range found {
		out[i] = seen(found[i])
	}
	return out, err
}

func (r reads) links(ctx context.Context, id string) ([]queue.Link, error) {
	return ask(ctx, r, id, store.JobLinks,
		func(l models.JobLink) queue.Link { return queue.Link{Kind: l.Kind, ID: l.ID} })
}

func (r reads) attempts(ctx context.Context, id string) ([]EarlierAttempt, error) {
	return ask(ctx, r, id, store.LoggedAttempts, func(a store.LoggedAttempt) EarlierAttempt {
		return EarlierAttempt{
			Number: a.Attempt, Outcome: a.Outcome, Code: a.Code, Error: r.private.errorText(ctx, a.Error), StartedAt: a.StartedAt, EndedAt: a.EndedAt,
			Times: a.Times,
		}
	})
}

// AwaitedJob is a job that another one has waited for.
type AwaitedJob struct {
	ID string
	// State is the one in which it ended: completed, failed or cancelled; empty when it was Removed
	// before its end.
	State   models.JobState
	Removed bool
}

func (r reads) awaited(ctx context.Context, id string) ([]AwaitedJob, error) {
	return ask(ctx, r, id, store.AwaitedJobs, func(a store.AwaitedJob) AwaitedJob {
		if a.EndedAs == "removed" {
			return AwaitedJob{ID: a.ID, Removed: true}
		}
		return AwaitedJob{ID: a.ID, State: models.JobState(a.EndedAs)}
	})
}

// info is a job as middleware sees it.
func (t *registered) info(job store.Job, r reads) *Info {
	return &Info{
		ID: job.ID, OrgID: job.OrgID, Type: job.Type, Owner: t.policy.Owner, Attempt: job.Attempt,
		MaxAttempts: t.maxAttempts(job), Priority: models.Priority(job.Priority),
		IdempotencyKey: cmp.Or(job.Key, job.ID), Payload: job.Payload, EnqueuedAt: job.EnqueuedAt, reads: r,
	}
}

// reads is where the questions of a job's handler are answered.
func (r working) reads(t *registered, job store.Job) reads {
	answered := reads{private: t.private(job)}
	if r.pool != nil {
		answered.q = r.pool
	}
	return answered
}
