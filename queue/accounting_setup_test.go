package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	org = "org_1"
	doc = "doc_1"
)

// The state of a document that has no job.
const absent models.JobState = ""

// bundle is a database, and a store that leases from it.
type bundle struct {
	*pgtest.DB
	t     *testing.T
	store *store.Store
	turns int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	return &bundle{DB: db, t: t, store: store.New(db.Pool)}
}

// databases are a few databases that the cases of a test take turns with: making one for each takes
// longer than the case.
type databases chan *pgtest.DB

func shared(t *testing.T) databases {
	t.Helper()
	dbs := make(databases, 3)
	for range cap(dbs) {
		dbs <- pgtest.New(t)
	}
	return dbs
}

// setup takes a database and gives it back, empty, after the case.
func (dbs databases) setup(t *testing.T) *bundle {
	t.Helper()
	db := <-dbs
	t.Cleanup(func() {
		_, err := db.Pool.Exec(context.WithoutCancel(t.Context()),
			`DELETE FROM daybook.accounting_work_queue; DELETE FROM daybook.attempt_log`)
		assert.NoError(t, err)
		dbs <- db
	})
	return &bundle{DB: db, t: t, store: store.New(db.Pool)}
}

func (b *bundle) job() models.AccountingJob {
	b.t.Helper()
	return fixture.Job(b.t, b.Pool, org, doc)
}

func (b *bundle) jobs() int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue`)
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

// clock is the database's.
func (b *bundle) clock() time.Time {
	b.t.Helper()
	var now time.Time
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `SELECT clock_timestamp()`).Scan(&now))
	return now
}

func (b *bundle) enqueue(version int64) queue.Response {
	b.t.Helper()
	r, err := queue.EnqueueAccountingJob(b.t.Context(), b.Pool,
		queue.AccountingJob{OrgID: org, DocumentID: doc, Version: version})
	require.NoError(b.t, err)
	return r
}

func (b *bundle) cancel() queue.Response {
	b.t.Helper()
	r, err := queue.CancelAccountingJob(b.t.Context(), b.Pool, queue.Document{OrgID: org, ID: doc})
	require.NoError(b.t, err)
	return r
}

// newTurn draws a fence for a turn of its own.
func (b *bundle) newTurn() store.Turn {
	b.t.Helper()
	b.turns++
	fence, err := b.store.NextFence(b.t.Context())
	require.NoError(b.t, err)
	return store.Turn{ID: fmt.Sprintf("run/0/%d", b.turns), Fence: fence, Worker: "test", WorkflowRunID: "run"}
}

// lease leases the one job that is due.
func (b *bundle) lease() (store.Turn, store.Job) {
	b.t.Helper()
	turn := b.newTurn()
	leased, err := b.store.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.Len(b.t, leased.Jobs, 1, "jobs that are due")
	return turn, leased.Jobs[0]
}

// endAttempt ends the attempt as a worker does: locked and looked at again, a job whose
// cancellation was asked for commits nothing.
func (b *bundle) endAttempt(turn store.Turn, id string, outcome models.Outcome, code models.ErrorCode,
	delay time.Duration,
) {
	b.t.Helper()
	err := pgx.BeginFunc(b.t.Context(), b.Pool, func(tx pgx.Tx) error {
		locked, err := store.Accounting.LockChunk(b.t.Context(), tx, turn, []string{id})
		if err != nil {
			return err
		}
		if len(locked) != 1 {
			return store.ErrLeaseLost
		}
		s := store.Completion{Job: locked[0], Outcome: outcome, Code: code, Message: string(code), Delay: delay}
		if s.Job.CancelRequested {
			s = store.Completion{Job: locked[0], Outcome: models.OutcomeCancelled}
		}
		_, err = store.Accounting.Complete(b.t.Context(), tx, turn, []store.Completion{s}, store.Access{})
		return err
	})
	require.NoError(b.t, err)
}

// attempt leases the job and ends the attempt.
func (b *bundle) attempt(outcome models.Outcome, code models.ErrorCode, delay time.Duration) {
	b.t.Helper()
	turn, job := b.lease()
	b.endAttempt(turn, job.ID, outcome, code, delay)
}

// bring makes a job for version 5 and brings it into a state, after one attempt that failed and one
// look that found the document not ready. Pending, it is due in an hour. The turn holds it when it
// is leased.
func (b *bundle) bring(state models.JobState) (turn store.Turn) {
	b.t.Helper()
	if state == absent {
		return turn
	}
	b.enqueue(5)
	b.attempt(models.OutcomeRetried, models.CodeDatabaseError, 0)
	var delay time.Duration
	if state == models.JobPending || state == models.JobCancelled {
		delay = time.Hour
	}
	b.attempt(models.OutcomeRescheduled, models.CodeDocumentNotReady, delay)
	switch state {
	case models.JobPending:
	case models.JobLeased:
		turn, _ = b.lease()
	case models.JobCompleted:
		b.attempt(models.OutcomeCompleted, "", 0)
	case models.JobFailed:
		b.attempt(models.OutcomeFailed, models.CodeUnbalanced, 0)
	case models.JobCancelled:
		b.cancel()
	}
	require.Equal(b.t, state, b.job().State)
	return turn
}
