package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// Document names a document of an organization.
type Document struct {
	OrgID string
	ID    string
	// Priority is for MarkDocumentReady; 0 is Normal.
	Priority Priority
}

// AccountingJob asks for one version of a document to be posted.
type AccountingJob struct {
	OrgID      string
	DocumentID string
	// Version is the document version that is to be posted, 0 or more.
	Version int64
	// ReadyAt is when the job is due; the zero time, and any in the past, is now.
	ReadyAt time.Time
	// Priority is how urgent it is; 0 is Normal.
	Priority Priority
}

// EnqueueAccountingJob asks for a document version to be posted. There is one job per document: a
// newer version replaces an older one, never the reverse. A request that comes while the job runs
// is not lost: the job is worked again.
//
// Errors: ErrEmptyID, ErrIDTooLong, ErrInvalidText, ErrInvalidTime, ErrNegativeVersion,
// ErrInvalidPriority, ErrInvalid (a version above 2⁶² - 1).
func EnqueueAccountingJob(ctx context.Context, q Querier, j AccountingJob) (Response, error) {
	if err := errors.Join(check(q), j.check()); err != nil {
		return Response{}, err
	}
	r, err := store.EnqueueAccountingJob(ctx, q, j.OrgID, j.DocumentID, j.Version, store.TimeOrNil(j.ReadyAt), j.Priority)
	logDocument(ctx, j.OrgID, j.DocumentID, r, err)
	return response(r), err
}

// EnqueueAccountingJobs is EnqueueAccountingJob for many jobs in one statement per MaxMany. The
// responses are in the order of the jobs. One job that is wrong refuses all; the error names its
// position.
//
// The jobs are enqueued in the order (organization, document), compared byte by byte, in whichever
// order they are given. Transactions that enqueue in that order, by one EnqueueAccountingJobs or
// one by one, do not deadlock with each other. Two EnqueueAccountingJobs in one transaction, or
// another order, can deadlock: then PostgreSQL ends one of the transactions with SQLSTATE 40P01,
// and its program runs it again.
func EnqueueAccountingJobs(ctx context.Context, q Querier, jobs []AccountingJob) ([]Response, error) {
	for i, j := range jobs {
		if err := j.check(); err != nil {
			return nil, fmt.Errorf("job %d: %w", i, err)
		}
	}
	if err := check(q); err != nil {
		return nil, err
	}
	order := lockOrder(jobs)
	out := make([]Response, len(jobs))
	for start := 0; start < len(jobs); start += MaxMany {
		part := order[start:min(start+MaxMany, len(jobs))]
		rows := store.AccountingJobRows{
			Orgs: make([]string, len(part)), Documents: make([]string, len(part)), Versions: make([]int64, len(part)),
			ReadyAts: make([]*time.Time, len(part)), Priorities: make([]int32, len(part)),
		}
		for i, n := range part {
			j := jobs[n]
			rows.Orgs[i], rows.Documents[i], rows.Versions[i] = j.OrgID, j.DocumentID, j.Version
			rows.ReadyAts[i] = store.TimeOrNil(j.ReadyAt)
			rows.Priorities[i] = int32(j.Priority)
			if j.Priority == 0 {
				rows.Priorities[i] = int32(Normal)
			}
		}
		done, err := store.EnqueueAccountingJobs(ctx, q, rows)
		if err != nil {
			return nil, err
		}
		for i, r := range done {
			out[part[i]] = response(r)
			logDocument(ctx, jobs[part[i]].OrgID, jobs[part[i]].DocumentID, r, nil)
		}
	}
	return out, nil
}

// lockOrder returns the positions of the jobs in the order in which they are asked for. A statement
// sorts its own jobs; when they need several, the statements must follow each other in the same
// order.
func lockOrder(jobs []AccountingJob) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	if len(jobs) > MaxMany {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(jobs[a].OrgID, jobs[b].OrgID), cmp.Compare(jobs[a].DocumentID, jobs[b].DocumentID))
		})
	}
	return order
}

// PendingAccountingJob asks for one more attempt at a document's job.
type PendingAccountingJob struct {
	OrgID      string
	DocumentID string
	// Version replaces the job's when it is newer; 0 leaves it alone.
	Version int64
	// Delay is until the job is due; 0 is at once.
	Delay time.Duration
}

// MarkAccountingJobPending makes a job due again, in any state: a failed one starts again with its
// attempts reset, a running one is tried again after its attempt. Fix the cause of a failure first.
//
// Errors: ErrJobNotFound, ErrNegativeDelay, and those of EnqueueAccountingJob.
func MarkAccountingJobPending(ctx context.Context, q Querier, p PendingAccountingJob) (Response, error) {
	if err := errors.Join(check(q), checkIDs(p.OrgID, p.DocumentID)); err != nil {
		return Response{}, err
	}
	if err := checkVersion(p.Version); err != nil {
		return Response{}, err
	}
	if p.Delay < 0 {
		return Response{}, ErrNegativeDelay
	}
	var version *int64
	if p.Version > 0 {
		version = &p.Version
	}
	r, err := store.MarkAccountingJobPending(ctx, q, p.OrgID, p.DocumentID, version, p.Delay)
	logDocument(ctx, p.OrgID, p.DocumentID, r, err)
	return response(r), err
}

// RepostAccountingJob asks for a document to be reversed and posted anew, even if neither it nor
// its rules changed: a new epoch. The result is that of MarkAccountingJobPending.
//
// Errors: ErrJobNotFound, ErrEmptyID, ErrIDTooLong, ErrInvalidText.
func RepostAccountingJob(ctx context.Context, q Querier, d Document) (Response, error) {
	if err := errors.Join(check(q), checkIDs(d.OrgID, d.ID)); err != nil {
		return Response{}, err
	}
	r, err := store.RepostAccountingJob(ctx, q, d.OrgID, d.ID)
	return response(r), err
}

// CancelAccountingJob asks that a document not be posted. A running attempt commits nothing. What
// is posted already stays: mark the document not ready or deleted to reverse it.
//
// Errors: ErrJobNotFound, ErrJobCompleted, ErrEmptyID, ErrIDTooLong, ErrInvalidText.
func CancelAccountingJob(ctx context.Context, q Querier, d Document) (Response, error) {
	if err := errors.Join(check(q), checkIDs(d.OrgID, d.ID)); err != nil {
		return Response{}, err
	}
	r, err := store.CancelAccountingJob(ctx, q, d.OrgID, d.ID)
	return response(r), err
}

// Marked is what a change of a document's readiness led to.
type Marked struct {
	Response
	// Version is the document's accounting_ready_version after the change.
	Version int64
}

// MarkDocumentReady says that a document of daybook.documents is complete: it sets
// accounting_ready_at, increments the version and enqueues it. q must be a transaction, the one
// that writes the document.
//
// Errors: ErrDocumentNotFound, ErrDocumentDeleted, ErrNoTransaction, and those of
// EnqueueAccountingJob.
func MarkDocumentReady(ctx context.Context, q Querier, d Document) (Marked, error) {
	if !validPriority(d.Priority) {
		return Marked{}, ErrInvalidPriority
	}
	return markDocument(ctx, q, d,
		func() (store.Marked, error) { return store.MarkDocumentReady(ctx, q, d.OrgID, d.ID, d.Priority) })
}

// MarkDocumentNotReady says that a document is not ready any more: the version is incremented and
// enqueued, and what was posted of the document is reversed. q must be a transaction.
//
// Errors: ErrDocumentNotFound, ErrNoTransaction, and those of EnqueueAccountingJob.
func MarkDocumentNotReady(ctx context.Context, q Querier, d Document) (Marked, error) {
	return markDocument(ctx, q, d,
		func() (store.Marked, error) { return store.MarkDocumentNotReady(ctx, q, d.OrgID, d.ID) })
}

// MarkDocumentDeleted marks a document deleted: the version is incremented and enqueued, the job
// will be cancelled, and what was posted of the document is reversed. A second call changes
// nothing. The row may have been removed already, if the document has a job. q must be a
// transaction; it goes on after ErrDocumentNotFound, which is what a document is told by that never
// came to Daybook.
//
// Errors: ErrDocumentNotFound, ErrNoTransaction, and those of EnqueueAccountingJob.
func MarkDocumentDeleted(ctx context.Context, q Querier, d Document) (Marked, error) {
	return markDocument(ctx, q, d,
		func() (store.Marked, error) { return store.MarkDocumentDeleted(ctx, q, d.OrgID, d.ID) })
}

func markDocument(ctx context.Context, q Querier, d Document, mark func() (store.Marked, error)) (Marked, error) {
	if err := errors.Join(check(q), checkIDs(d.OrgID, d.ID)); err != nil {
		return Marked{}, err
	}
	if err := inTransaction(q); err != nil {
		return Marked{}, err
	}
	m, err := mark()
	logDocument(ctx, d.OrgID, d.ID, m.Requested, err)
	return Marked{Response: response(m.Requested), Version: m.Version}, err
}

func (j AccountingJob) check() error {
	if !validPriority(j.Priority) {
		return ErrInvalidPriority
	}
	return cmp.Or(checkVersion(j.Version), checkTime(j.ReadyAt), checkIDs(j.OrgID, j.DocumentID))
}

// maxVersion is the highest version that a request may name: a document's own versions go on from
// the highest one that was asked for.
const maxVersion = 1<<62 - 1

func checkVersion(version int64) error {
	switch {
	case version < 0:
		return ErrNegativeVersion
	case version > maxVersion:
		return store.Invalid("version %d is above %d, and leaves no room for those that follow", version, int64(maxVersion))
	}
	return nil
}
