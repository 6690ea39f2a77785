package listing

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ErrOperationNotFound: there is no such bulk operation; finished ones are kept for a month.
var ErrOperationNotFound = failure.New(failure.OperationNotFound, "no such bulk operation")

// BulkJobs is a request for every background job that a filter means.
type BulkJobs struct {
	// Filter says which. A retry takes dead letters when its State is empty, and may be asked for
	// JobCancelled or JobPending; a cancellation takes all that are not finished, and dead letters,
	// and may be asked for one of those states.
	Filter JobFilter
	// All must be set when the filter says nothing but a state.
	All bool
	// DryRun counts and changes nothing.
	DryRun bool
}

// RetryJobs tries many jobs again, as RetryJob does one: StartRetry and RunBulk. Jobs that fail
// while it runs are not tried twice. With an error the operation, which the error names, can be
// gone on with.
func (l *Listing) RetryJobs(ctx context.Context, q store.Querier, r BulkJobs, mode string,
	delay time.Duration,
) (models.BulkOperation, error) {
	op, err := l.StartRetry(ctx, r, mode, delay)
	return l.finishBulk(ctx, q, r, op, err)
}

// CancelJobs cancels many jobs, as CancelJob does one: StartCancel and RunBulk.
func (l *Listing) CancelJobs(ctx context.Context, q store.Querier, r BulkJobs) (models.BulkOperation, error) {
	op, err := l.StartCancel(ctx, r)
	return l.finishBulk(ctx, q, r, op, err)
}

func (l *Listing) finishBulk(ctx context.Context, q store.Querier, r BulkJobs, op models.BulkOperation,
	err error,
) (models.BulkOperation, error) {
	if err == nil && !r.DryRun {
		id := op.ID
		if err = store.RunBulk(ctx, q, id); err != nil {
			err = fmt.Errorf("bulk operation %s, which can be gone on with: %w", id, err)
		}
		// The counts are wanted most when it was cut off.
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if now, readErr := l.BulkOperation(reading, "", id); readErr == nil {
			op = now
		}
	}
	return op, err
}

// StartRetry chooses the jobs that are to be tried again, in batches that RunBulk changes. mode and
// delay are RetryJob's. With DryRun they are counted, and the operation has no id.
func (l *Listing) StartRetry(ctx context.Context, r BulkJobs, mode string,
	delay time.Duration,
) (models.BulkOperation, error) {
	op := models.BulkOperation{Kind: models.KindJobs, Action: models.BulkRetry, Mode: &mode}
	if seconds := delay.Seconds(); seconds > 0 {
		op.DelaySeconds = &seconds
	}
	states := []models.JobState{models.JobFailed}
	if r.Filter.State != "" {
		states = []models.JobState{models.JobFailed, models.JobCancelled, models.JobPending}
	}
	return l.startBulk(ctx, r, op, BulkEdit{}, states)
}

// StartCancel is StartRetry for jobs that are to be cancelled.
func (l *Listing) StartCancel(ctx context.Context, r BulkJobs) (models.BulkOperation, error) {
	return l.startBulk(ctx, r, models.BulkOperation{Kind: models.KindJobs, Action: models.BulkCancel}, BulkEdit{},
		[]models.JobState{models.JobPending, models.JobLeased, models.JobFailed})
}

// startBulk chooses the jobs of an operation, which may have one of the states, or the one that the
// filter names.
func (l *Listing) startBulk(ctx context.Context, r BulkJobs, op models.BulkOperation, edit BulkEdit,
	states []models.JobState,
) (models.BulkOperation, error) {
	if !r.Filter.bounded() && !r.All {
		return op, store.Invalid("the filter means every job: name an organization, a type, an error code, a time or a " +
			"link, or say that all are meant")
	}
	if s := r.Filter.State; s != "" {
		if !slices.Contains(states, s) {
			return op, store.Invalid("the state of the jobs may be %s, not %s", strings.Join(store.Texts(states), ", "), s)
		}
		states = []models.JobState{s}
	}
	op.States = store.Texts(states)
	if len(states) == 1 {
		// The time window is that of the state.
		r.Filter.State = states[0]
	}
	if r.Filter.OrgID != "" {
		op.OrgID = &r.Filter.OrgID
	}
	if op.Action == models.BulkEdit {
		if err := l.checkPatch(ctx, edit.Patch); err != nil {
			return op, err
		}
		if r.DryRun {
			err := l.tryPatch(l.jobs(ctx, r.Filter).Where("state IN ?", []string(op.States)), &op, edit)
			return op, err
		}
	}
	return l.beginBulk(ctx, r.DryRun, op, edit, func(l *Listing) *gorm.DB { return l.jobs(ctx, r.Filter) })
}

// beginBulk counts the jobs that a query means and that are in one of the operation's states, or,
// unless it is a dry run, writes the operation and its batches.
func (l *Listing) beginBulk(ctx context.Context, dryRun bool, op models.BulkOperation, edit BulkEdit,
	jobs func(l *Listing) *gorm.DB,
) (models.BulkOperation, error) {
	if dryRun {
		var n int64
		err := jobs(l).Where("state IN ?", []string(op.States)).Count(&n).Error
		op.Matched = int(n)
		return op, store.Wrap("count jobs", err)
	}
	err := l.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		inside := *l
		inside.db = tx
		if err := inside.chooseBulk(jobs(&inside), &op, edit); err != nil || op.Action != models.BulkEdit {
			return store.Wrap("choose jobs", err)
		}
		tried := op // its counts are those of the trial
		return inside.tryPatch(inside.chosen(ctx, op.ID), &tried, edit)
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		op.ID = ""
	}
	return op, err
}

// chooseBulk writes an operation and its batches of 500 of the jobs that a query means, and forgets
// operations that ended a month ago.
func (l *Listing) chooseBulk(jobs *gorm.DB, op *models.BulkOperation, edit BulkEdit) error {
	const forget = `
DELETE FROM daybook.bulk_operations
 WHERE id IN (SELECT id FROM daybook.bulk_operations WHERE finished_at < clock_timestamp() - interval '30 days' FOR UPDATE SKIP LOCKED)`
	const begin = `
INSERT INTO daybook.bulk_operations (kind, org_id, action, mode, delay_seconds, states, patch, actor)
VALUES (@kind, @org, @action, @mode, @delay, string_to_array(@states, ' '), CAST(CAST(@patch AS text) AS jsonb), @actor)
RETURNING id, created_at, updated_at`
	const choose = `
INSERT INTO daybook.bulk_batches (operation_id, n, job_ids, generations)
SELECT ?, j.n / 500, array_agg(j.id ORDER BY j.id), array_agg(j.generation ORDER BY j.id) FILTER (WHERE ?)
  FROM (SELECT c.id, c.generation, row_number() OVER (ORDER BY c.id) - 1 AS n FROM (?) c) j
 GROUP BY 2`
	const count = `
UPDATE daybook.bulk_operations o
   SET matched = (SELECT coalesce(sum(cardinality(b.job_ids)), 0) FROM daybook.bulk_batches b WHERE b.operation_id = o.id)
 WHERE o.id = ?
RETURNING matched`
	if err := l.db.Exec(forget).Error; err != nil {
		return err
	}
	if err := l.db.Raw(begin, map[string]any{
		"kind": string(op.Kind), "org": op.OrgID, "action": string(op.Action), "mode": op.Mode, "delay": op.DelaySeconds,
		"states": strings.Join(op.States, " "), "patch": edit.patch(), "actor": edit.By,
	}).Row().Scan(&op.ID, &op.CreatedAt, &op.UpdatedAt); err != nil {
		return err
	}
	if err := l.db.Exec(choose, op.ID, op.Action == models.BulkEdit, jobs.Where("state IN ?", []string(op.States)).Select("id, generation")).Error; err != nil {
		return err
	}
	return l.db.Raw(count, op.ID).Row().Scan(&op.Matched)
}

// BulkOperation reads an operation on jobs of an organization, or any when org is empty;
// ErrOperationNotFound when there is none.
func (l *Listing) BulkOperation(ctx context.Context, org, id string) (models.BulkOperation, error) {
	return one[models.BulkOperation]("read the bulk operation",
		where(l.db.WithContext(ctx).Where("id = ?", id), "org_id = ?", org),
		fmt.Errorf("%w: %s; finished ones are kept for a month", ErrOperationNotFound, id))
}
