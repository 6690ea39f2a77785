package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

var document = queue.Document{OrgID: org, ID: doc}

func (b *bundle) status() queue.AccountingJobStatus {
	b.t.Helper()
	s, err := queue.ReadAccountingJobStatus(b.t.Context(), b.Pool, document)
	require.NoError(b.t, err)
	return s
}

// post inserts an impact without entries.
func (b *bundle) post(seq int, kind models.ImpactKind, version int64) {
	b.t.Helper()
	b.exec(`INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, document_date, posting_date, entry_count, job_id, attempt)
	        VALUES ($1::integer, $2, $3, $4, $1::integer, $5, 1, '2026-03-14', '2026-03-14', 0, 'j', 1)`, seq, org, doc,
		version, string(kind))
}

func TestStatusOfEachState(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for _, test := range []struct {
		state models.JobState
		ended bool
		code  models.ErrorCode
	}{
		{models.JobPending, false, models.CodeDocumentNotReady},
		{models.JobLeased, false, models.CodeDocumentNotReady},
		{models.JobCompleted, true, ""},
		{models.JobFailed, true, models.CodeUnbalanced},
		{models.JobCancelled, true, models.CodeDocumentNotReady},
	} {
		t.Run(string(test.state), func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			b.bring(test.state)
			s, job := b.status(), b.job()
			assert.Equal(t, job.ID, s.JobID)
			assert.Equal(t, test.state, s.State)
			assert.Equal(t, test.ended, s.Ended())
			assert.Equal(t, int64(5), s.Version)
			assert.Equal(t, job.RunCount, s.Attempts)
			assert.Equal(t, test.code, s.ErrorCode)
			assert.Equal(t, test.ended, s.FinishedAt != nil)
			assert.Equal(t, test.state == models.JobPending, s.NextTry != nil)
			assert.Nil(t, s.LiveImpactID)
			assert.False(t, s.Posted())
		})
	}
}

func TestStatusSaysWhatIsPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := queue.ReadAccountingJobStatus(t.Context(), b.Pool, document)
	assert.ErrorIs(t, err, queue.ErrJobNotFound)
	_, err = queue.ReadAccountingJobStatus(t.Context(), b.Pool, queue.Document{OrgID: org})
	assert.ErrorIs(t, err, queue.ErrEmptyID)

	b.enqueue(3)
	b.post(1, models.ImpactPost, 2)
	s := b.status()
	require.NotNil(t, s.LiveImpactID)
	assert.Equal(t, int64(1), *s.LiveImpactID)
	assert.Equal(t, int64(2), *s.PostedVersion)
	assert.False(t, s.Posted(), "version 3 was asked for")

	b.exec(`INSERT INTO daybook.confirmations (impact_id, document_version, rule_set_version, job_id, attempt) VALUES (1, 3, 1, 'j', 1)`)
	s = b.status()
	assert.Equal(t, int64(3), *s.PostedVersion)
	assert.True(t, s.Posted(), "confirmed for version 3")

	b.post(2, models.ImpactReverse, 4)
	s = b.status()
	assert.Nil(t, s.LiveImpactID)
	assert.Nil(t, s.PostedVersion)

	db := stdlib.OpenDBFromPool(b.Pool)
	defer func() { assert.NoError(t, db.Close()) }()
	other, err := queue.ReadAccountingJobStatus(t.Context(), queue.SQL(db), document)
	require.NoError(t, err)
	assert.Equal(t, s.JobID, other.JobID)
}

// looking tells of each look at the database.
type looking struct {
	queue.Querier
	looks chan struct{}
}

func (l looking) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	row := l.Querier.QueryRow(ctx, query, args...)
	select {
	case l.looks <- struct{}{}:
	case <-ctx.Done():
	}
	return row
}

func TestWaitReturnsWhenTheVersionHasEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(1)
	b.attempt(models.OutcomeFailed, models.CodeUnbalanced, 0)
	b.enqueue(2)
	q := looking{b.Pool, make(chan struct{})}
	type outcome struct {
		status queue.AccountingJobStatus
		err    error
	}
	done := make(chan outcome, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		s, err := queue.WaitAccountingJob(ctx, q, document,
			queue.WaitAccountingJobOptions{Version: 3, FirstPoll: time.Millisecond, MaxPoll: time.Millisecond})
		done <- outcome{s, err}
	}()
	<-q.looks
	b.attempt(models.OutcomeFailed, models.CodeUnbalanced, 0)
	<-q.looks // version 2 has failed: not what is waited for
	<-q.looks
	b.enqueue(3)
	<-q.looks
	b.attempt(models.OutcomeCompleted, "", 0)
	for {
		select {
		case <-q.looks:
			continue
		case o := <-done:
			require.NoError(t, o.err)
			assert.Equal(t, models.JobCompleted, o.status.State)
			assert.Equal(t, int64(3), o.status.Version)
			return
		}
	}
}

func TestWaitForWhatHasEndedReturnsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := queue.WaitAccountingJob(t.Context(), b.Pool, document, queue.WaitAccountingJobOptions{})
	assert.ErrorIs(t, err, queue.ErrJobNotFound)
	_, err = queue.WaitAccountingJob(t.Context(), b.Pool, document, queue.WaitAccountingJobOptions{Version: -1})
	assert.ErrorIs(t, err, queue.ErrNegativeVersion)
	b.enqueue(1)
	b.cancel()
	s, err := queue.WaitAccountingJob(t.Context(), b.Pool, document,
		queue.WaitAccountingJobOptions{FirstPoll: time.Hour, Version: 1})
	require.NoError(t, err)
	assert.Equal(t, models.JobCancelled, s.State)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(1)
	q := looking{b.Pool, make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-q.looks
		cancel(errors.New("enough"))
	}()
	s, err := queue.WaitAccountingJob(ctx, q, document,
		queue.WaitAccountingJobOptions{FirstPoll: time.Hour, MaxPoll: time.Hour})
	assert.ErrorIs(t, err, context.Canceled)
	if s.JobID != "" {
		assert.Equal(t, models.JobPending, s.State)
	}
}

func TestWaitRefusesTransactions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(1)
	b.cancel()
	wait := func(q queue.Querier) error {
		_, err := queue.WaitAccountingJob(t.Context(), q, document, queue.WaitAccountingJobOptions{})
		return err
	}
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	assert.ErrorIs(t, wait(tx), queue.ErrInTransaction)
	assert.ErrorIs(t, wait(tx.Conn()), queue.ErrInTransaction)
	_, err = queue.MarkAccountingJobPending(t.Context(), tx, queue.PendingAccountingJob{OrgID: org, DocumentID: doc})
	require.NoError(t, err)
	hidden := struct{ queue.Querier }{tx}
	assert.ErrorIs(t, wait(hidden), queue.ErrInTransaction, "it has written something")

	db := stdlib.OpenDBFromPool(b.Pool)
	defer func() { assert.NoError(t, db.Close()) }()
	sqlTx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = sqlTx.Rollback() }()
	assert.ErrorIs(t, wait(queue.SQL(sqlTx)), queue.ErrInTransaction)
	assert.NoError(t, wait(queue.SQL(db)))
	assert.ErrorIs(t, wait(queue.GORM(nil)), queue.ErrNoTransaction)

	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	assert.NoError(t, wait(conn))
}
