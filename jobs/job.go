package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Job is one attempt at a job, as its handler sees it.
type Job[P queue.Payload] struct {
	ID    string
	OrgID string
	// Type is the type under which the job was enqueued: an alias, or the payload's own.
	Type string
	// Attempt is the number of this attempt, from 1; MaxAttempts the number of the last one.
	Attempt, MaxAttempts int
	// Priority is the one that the job was enqueued with.
	Priority models.Priority
	// IdempotencyKey is the same in all attempts: the key that the job was enqueued with, or else its
	// id. Pass it to a server that does something outside of the database, so that the server can
	// recognize a repeated request.
	IdempotencyKey string
	Payload        P
	EnqueuedAt     time.Time
	// Encrypted: the payload is encrypted in the database, and so are the result, the progress and the
	// errors. A handler that keeps what it knows elsewhere should take care of that itself.
	Encrypted bool

	attempt *attempt
}

// attempt collects what a handler says besides its error.
type attempt struct {
	result   any
	inTx     []func(ctx context.Context, tx pgx.Tx) error
	progress func(ctx context.Context, v json.RawMessage) error
	reads    reads
	// callbacks is where callbacks are put on record; nil: there are none.
	callbacks store.Querier
	// steps are those of the attempt; nil: it has none, in a bulk handler.
	steps *steps
}

// Links are those that the job was enqueued with, read from the database. A bulk handler reads them
// in its transaction.
func (j *Job[P]) Links(ctx context.Context) ([]queue.Link, error) {
	return j.attempt.reads.links(ctx, j.ID)
}

// EarlierAttempts are the attempts before this one that are on record, the latest first, 100 at
// most, read from the database.
func (j *Job[P]) EarlierAttempts(ctx context.Context) ([]EarlierAttempt, error) {
	return j.attempt.reads.attempts(ctx, j.ID)
}

// Awaited says how the jobs ended that this one has waited for, if it was enqueued with
// queue.JobOptions.AfterAnyEnd: as they were when it was released. A dead letter may have been
// tried again since. Without that option those jobs are completed, and the list is empty.
// queue.ReadJobStatus has their results.
func (j *Job[P]) Awaited(ctx context.Context) ([]AwaitedJob, error) {
	return j.attempt.reads.awaited(ctx, j.ID)
}

// SetResult stores v, as JSON, with the job when this attempt completes it. A v that cannot be
// written as JSON, or that the database cannot hold (U+0000, half a surrogate pair, more than
// models.MaxResultBytes or models.MaxResultLevels), is not stored: the job is completed without a
// result, with the code RESULT_NOT_STORED and an error that says why.
func (j *Job[P]) SetResult(v any) { j.attempt.result = v }

// Progress stores v, as JSON, for people who look at a running job. It fails when another worker
// has reclaimed the job: then the handler should end; and when the database cannot hold v, as
// SetResult says. In a bulk handler it fails always.
func (j *Job[P]) Progress(ctx context.Context, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := payload.CheckResult(raw); err != nil {
		return fmt.Errorf("the progress cannot be stored: %w", err)
	}
	if raw, err = j.attempt.reads.private.seal(ctx, encryption.Progress, raw); err != nil {
		return err
	}
	return j.attempt.progress(ctx, raw)
}

// InTx runs f after the handler has returned nil, in the short transaction that completes the job.
// What f writes commits exactly once: with the completion, or not at all. An error of f rolls the
// transaction back and ends the attempt with that error. The transaction's Commit and Rollback are
// refused; f may begin savepoints. In a bulk handler InTx makes the job a dead letter: the handler
// has the transaction already.
func (j *Job[P]) InTx(f func(ctx context.Context, tx pgx.Tx) error) {
	j.attempt.inTx = append(j.attempt.inTx, f)
}
