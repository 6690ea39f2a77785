package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// bulkBatch is how many jobs a bulk request changes in a transaction.
const bulkBatch = 500

// BulkJobs is a request for every background job that a filter means.
type BulkJobs struct {
	// Filter says which. A retry takes dead letters when its State is empty, and may be asked for JobCancelled or JobPending; a
	// cancellation takes all that are not finished, and dead letters, and may be asked for one of those states.
	Filter QueuedJobFilter
	// All must be set when the filter says nothing but a state.
	All bool
	// DryRun counts and changes nothing.
	DryRun bool
}

// BulkDone is what a bulk request led to.
type BulkDone struct {
	// Matched counts the jobs that the filter meant when the request began.
	Matched int `json:"matched"`
	// Changed counts those that are pending again, or cancelled, or will be after their running attempt.
	Changed int `json:"changed"`
	// Left counts those that were left alone: somebody changed or locked them meanwhile, or another one with the same payload is
	// open and they are to be unique.
	Left int `json:"left"`
}

// RetryQueuedJobs tries many jobs again, as RetryJob does one, in batches that commit by themselves when q is a pool.
// Jobs that fail while it runs are not tried twice.
func (l *Listing) RetryQueuedJobs(ctx context.Context, q Querier, r BulkJobs, mode string, delay time.Duration) (BulkDone, error) {
	const stmt = `
WITH matching AS MATERIALIZED (
    SELECT j.id
      FROM daybook.jobs j
     WHERE j.id = ANY ($1) AND j.state::text = ANY ($2)
     ORDER BY j.id
       FOR NO KEY UPDATE SKIP LOCKED
)
SELECT count(*) FILTER (WHERE r.result <> 'unchanged')
  FROM matching m
 CROSS JOIN LATERAL daybook.retry_job(m.id, $3, NULLIF($4::float8, 0)) r`
	states := []models.JobState{models.JobFailed}
	if r.Filter.State != "" {
		states = []models.JobState{models.JobFailed, models.JobCancelled, models.JobPending}
	}
	return l.bulk(ctx, r, states, func(ids, states []string) (n int, err error) {
		return n, wrap("retry jobs", q.QueryRow(ctx, stmt, ids, states, mode, delay.Seconds()).Scan(&n))
	})
}

// CancelQueuedJobs cancels many jobs, as CancelJob does one, in batches that commit by themselves when q is a pool.
func (l *Listing) CancelQueuedJobs(ctx context.Context, q Querier, r BulkJobs) (BulkDone, error) {
	const stmt = `
WITH matching AS MATERIALIZED (
    SELECT j.id
      FROM daybook.jobs j
     WHERE j.id = ANY ($1) AND j.state::text = ANY ($2)
     ORDER BY j.id
       FOR NO KEY UPDATE SKIP LOCKED
)
SELECT count(*) FILTER (WHERE r.result <> 'unchanged')
  FROM matching m
 CROSS JOIN LATERAL daybook.cancel_job(m.id) r`
	states := []models.JobState{models.JobPending, models.JobLeased, models.JobFailed}
	return l.bulk(ctx, r, states, func(ids, states []string) (n int, err error) {
		return n, wrap("cancel jobs", q.QueryRow(ctx, stmt, ids, states).Scan(&n))
	})
}

// bulk finds the jobs first and changes them then, so that each is looked at once.
func (l *Listing) bulk(ctx context.Context, r BulkJobs, states []models.JobState, change func(ids, states []string) (int, error)) (BulkDone, error) {
	var done BulkDone
	if !r.Filter.bounded() && !r.All {
		return done, fmt.Errorf("%w: the filter means every job: name an organization, a type, an error code, a time or a link, or say that all are meant", ErrInvalid)
	}
	if s := r.Filter.State; s != "" {
		if !slices.Contains(states, s) {
			return done, fmt.Errorf("%w: jobs that are %s cannot be asked for, only those that are one of %v", ErrInvalid, s, states)
		}
		states = []models.JobState{s}
	}
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	if len(states) == 1 {
		// The time window is that of the state.
		r.Filter.State = states[0]
	}
	var ids []string
	if err := l.queuedJobs(ctx, r.Filter).Where("state IN ?", names).Order("id").Pluck("id", &ids).Error; err != nil {
		return done, wrap("look for jobs", err)
	}
	done.Matched = len(ids)
	if r.DryRun {
		return done, nil
	}
	for batch := range slices.Chunk(ids, bulkBatch) {
		n, err := change(batch, names)
		done.Changed += n
		done.Left += len(batch) - n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
