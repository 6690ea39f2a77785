package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// BulkEdit says how many jobs are edited.
type BulkEdit struct {
	// Patch is a JSON patch (RFC 6902) of their payloads.
	Patch json.RawMessage
	// Retry is RetryJob's mode, by which they are tried again; empty: they are not.
	Retry string
	// By is who edits.
	By string
	// Check checks a payload as when a job is enqueued: the limits, and the schema of its type.
	Check func(jobType string, payload json.RawMessage) error
}

// patch is the patch as an argument of a statement; nil: there is none.
func (e *BulkEdit) patch() *string {
	if e.Patch == nil {
		return nil
	}
	return new(string(e.Patch))
}

// EditJobs edits many jobs, as EditJob does one: StartEdit and RunBulk.
func (l *Listing) EditJobs(ctx context.Context, q store.Querier, r BulkJobs, e BulkEdit) (models.BulkOperation, error) {
	op, err := l.StartEdit(ctx, r, e)
	return l.finishBulk(ctx, q, r, op, err)
}

// StartEdit is StartRetry for jobs that are to be edited. It tries the patch on each of them first:
// if a payload would be refused, it fails with the reason, and nothing is changed. With DryRun the
// operation says how many jobs would be changed, and how many would be left alone because the patch
// does not apply to them, or changes nothing.
func (l *Listing) StartEdit(ctx context.Context, r BulkJobs, e BulkEdit) (models.BulkOperation, error) {
	op := models.BulkOperation{Kind: models.KindJobs, Action: models.BulkEdit}
	if e.Retry != "" {
		op.Mode = &e.Retry
	}
	states := []models.JobState{models.JobFailed}
	if r.Filter.State != "" {
		states = []models.JobState{models.JobFailed, models.JobCancelled, models.JobPending}
	}
	return l.startBulk(ctx, r, op, e, states)
}

// tryPatch counts the jobs that a patch would change.
func (l *Listing) tryPatch(ctx context.Context, r BulkJobs, op *models.BulkOperation, e BulkEdit) (err error) {
	const columns = `id, type, payload::text, daybook.patch_json(payload, CAST(? AS text)::jsonb)::text`
	rows, err := l.jobs(ctx, r.Filter).Where("state IN ?", []string(op.States)).Select(columns, string(e.Patch)).Rows()
	if err != nil {
		return store.Wrap("try the patch", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, jobType, before string
		var after *string
		if err := rows.Scan(&id, &jobType, &before, &after); err != nil {
			return store.Wrap("try the patch", err)
		}
		op.Matched++
		if after == nil || *after == before {
			op.LeftAlone++
			continue
		}
		op.Changed++
		if err := e.Check(jobType, json.RawMessage(*after)); err != nil {
			return fmt.Errorf("job %s, as it would be: %w", id, err)
		}
	}
	if err := rows.Err(); err != nil {
		return store.Wrap("try the patch", err)
	}
	if !r.DryRun {
		op.Matched, op.Changed, op.LeftAlone = 0, 0, 0
	}
	return nil
}
