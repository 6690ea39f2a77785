package accounting

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Job is one job as a processor sees it.
type Job struct {
	// ID is the job's own id; it stays the same for all versions of a document.
	ID         string
	OrgID      string
	DocumentID string
	// Version is the newest document version that was asked for.
	Version int64
	// Attempt is the number of the running attempt, from 1.
	Attempt int
	// NotReady counts how often the document was read so far and was not ready.
	NotReady int
	// Epoch grows with each deliberate repost of the document.
	Epoch int
	// WorkflowRunID is the run of the workflow that works on the job.
	WorkflowRunID string
}

// Processor works a chunk of jobs in two phases.
//
// Prepare does what takes time, outside of any transaction. It may be called more than once for a
// job, because a worker can die after it, so what it does outside the database should be
// idempotent. Its error fails the chunk: a chunk of several jobs is then halved until the one to
// blame stands alone.
type Processor interface {
	Prepare(ctx context.Context, jobs []Job) (Commit, error)
}

// Commit writes the effect of a prepared chunk in tx, the transaction that also completes the jobs.
// jobs are those that the turn still holds, which may be fewer than were prepared; Commit must
// write nothing for the others. It must be short, and must neither commit nor roll back tx.
//
// The first result says how each of the given jobs ended: nil completed it, a *models.JobError does
// what its code says, any other error is a PROCESSOR_ERROR. It does not undo what was written for
// its job in tx. A nil slice means that all are completed. The second result undoes the whole
// chunk, which is then halved.
type Commit func(ctx context.Context, tx pgx.Tx, jobs []Job) ([]error, error)

// JobProcessor works one job at a time, in the same two phases.
type JobProcessor interface {
	Prepare(ctx context.Context, job Job) (JobCommit, error)
}

// JobCommit writes the effect of one job; its error is the error of the job's attempt. A nil
// JobCommit writes nothing.
type JobCommit func(ctx context.Context, tx pgx.Tx, job Job) error
