package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

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
	// Try, if it is set, is told of each job that would be changed.
	Try func(id, jobType string, before, after json.RawMessage)
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

// checkPatch refuses what is not a patch, also where no job has to do with it.
func (l *Listing) checkPatch(ctx context.Context, patch json.RawMessage) error {
	if _, err := l.pool.Exec(ctx, `SELECT daybook.patch_json('{}', $1::text::jsonb)`, string(patch)); err != nil {
		if strings.HasPrefix(store.SQLState(err), "22") {
			return store.Refuse(models.ErrPayloadInvalid,
				"the patch is not valid JSON, or holds what the database cannot store: "+err.Error(), "")
		}
		return store.Wrap("try the patch", err)
	}
	return nil
}

// chosen are the jobs of an operation that have not changed since they were chosen. Each change of
// a payload is one of the generation.
func (l *Listing) chosen(ctx context.Context, operation string) *gorm.DB {
	return l.db.WithContext(ctx).Model(&models.Job{}).Where(
		"(id, generation) IN (SELECT unnest(b.job_ids), unnest(b.generations) FROM daybook.bulk_batches b WHERE b.operation_id = ?)", operation)
}

// tryPatch counts the jobs that a patch would change, and shows some of them. It checks each payload
// that there would be: what is edited is what was tried.
func (l *Listing) tryPatch(jobs *gorm.DB, op *models.BulkOperation, e BulkEdit) (err error) {
	const columns = `id, type, payload::text, p.patched::text, coalesce(daybook.edit_refusal(payload, p.patched), '')`
	const patched = `CROSS JOIN LATERAL (SELECT daybook.patched_payload(payload, CAST(? AS text)::jsonb) AS patched OFFSET 0) p`
	rows, err := jobs.Joins(patched, string(e.Patch)).Select(columns).Rows()
	if err != nil {
		return store.Wrap("try the patch", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, jobType, before, refusal string
		var after *string
		if err := rows.Scan(&id, &jobType, &before, &after, &refusal); err != nil {
			return store.Wrap("try the patch", err)
		}
		op.Matched++
		if after == nil {
			op.LeftAlone++
			continue
		}
		op.Changed++
		if refusal != "" {
			return store.Invalid("the payload of job %s %s: a patch reaches what is there in plain", id, refusal)
		}
		if err := e.Check(jobType, json.RawMessage(*after)); err != nil {
			return fmt.Errorf("job %s, as it would be: %w", id, err)
		}
		if e.Try != nil {
			e.Try(id, jobType, json.RawMessage(before), json.RawMessage(*after))
		}
	}
	return store.Wrap("try the patch", rows.Err())
}
